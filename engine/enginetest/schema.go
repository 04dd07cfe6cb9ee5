package enginetest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// CheckInputSchema fails the test unless the properties of a JSON schema for forms (engine.Definition.InputSchema)
// are exactly the fields of In.
func CheckInputSchema[In any](t testing.TB, schema string) {
	t.Helper()
	var parsed struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal([]byte(schema), &parsed); err != nil {
		t.Fatal(err)
	}
	document := map[string]string{}
	for name := range parsed.Properties {
		document[name] = "x"
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var in In
	if err := decoder.Decode(&in); err != nil {
		t.Errorf("the schema names what %T does not have: %v", in, err)
	}
	for field, v := range reflect.ValueOf(in).Fields() {
		if v.IsZero() {
			t.Errorf("the schema does not name %s of %T", field.Name, in)
		}
	}
}
