package poller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// fields are unknown members of a JSON object, byte for byte.
type fields map[string]json.RawMessage

// decodeObject decodes a JSON object into a struct and returns the members without a field in the struct. Names are
// compared exactly: encoding/json alone would accept "Version" for "version".
func decodeObject(data []byte, into any) (fields, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	var all fields
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, errors.New("null in place of an object")
	}
	known := fields{}
	for _, name := range names(reflect.TypeOf(into).Elem()) {
		if value, ok := all[name]; ok {
			known[name] = value
			delete(all, name)
		}
	}
	text, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// encodeObject encodes a struct as a JSON object, followed by the unknown members.
func encodeObject(known any, extra fields) ([]byte, error) {
	text, err := json.Marshal(known)
	if err != nil || len(extra) == 0 {
		return text, err
	}
	var out bytes.Buffer
	out.Write(text[:len(text)-1])
	comma := len(text) > len("{}")
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		member, err := json.Marshal(fields{name: extra[name]})
		if err != nil {
			return nil, fmt.Errorf("field %.64q: %w", name, err)
		}
		if comma {
			out.WriteByte(',')
		}
		comma = true
		out.Write(member[1 : len(member)-1])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// names returns the JSON names of a struct's fields.
func names(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}
