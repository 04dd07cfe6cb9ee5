package spn

import (
	"bytes"
	"encoding/json"
	"testing"
)

// The schema for forms names what messages may have, and no more.
func TestInputSchema(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal([]byte(inputSchema), &schema); err != nil {
		t.Fatal(err)
	}
	document := map[string]string{}
	for name := range schema.Properties {
		document[name] = "x"
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var in Input
	if err := decoder.Decode(&in); err != nil || in != (Input{"x", "x"}) {
		t.Errorf("%+v, %v", in, err)
	}
}
