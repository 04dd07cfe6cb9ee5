// Package jsonc reads settings files like the tools of the Functions host: JSON with a byte order mark, comments, and
// commas after the last member. It owns no storage keys.
package jsonc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/vibedata/roundhouse/internal/payload"
)

// Standard returns a text with a byte order mark, // and /* */ comments and commas before a closing bracket replaced by
// blanks: every other byte stays in its place. Other errors in the text stay as they are.
func Standard(text []byte) []byte {
	out := bytes.Clone(text)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' && out[i] != '\r' {
				out[i] = ' '
			}
		}
	}
	if bytes.HasPrefix(out, []byte(payload.ByteOrderMark)) {
		blank(0, len(payload.ByteOrderMark))
	}
	comma := -1 // position of a comma without a following value
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(out[i:], []byte("//")):
			end := bytes.IndexByte(out[i:], '\n')
			if end < 0 {
				end = len(out) - i
			}
			blank(i, i+end)
			i += end - 1
		case bytes.HasPrefix(out[i:], []byte("/*")):
			end := bytes.Index(out[i+2:], []byte("*/"))
			if end < 0 {
				return out // the parser reports where it begins
			}
			blank(i, i+2+end+2)
			i += 2 + end + 1
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 && follows(out[:comma]) {
				blank(comma, comma+1)
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out
}

// follows reports whether a comma after a text follows a value.
func follows(text []byte) bool {
	text = bytes.TrimRight(text, " \t\r\n")
	return len(text) > 0 && !bytes.ContainsRune([]byte("{[,:"), rune(text[len(text)-1]))
}

// Unmarshal decodes a settings file.
func Unmarshal(text []byte, into any) error { return json.Unmarshal(Standard(text), into) }

// Values are settings by their names. Numbers and booleans are read as their texts, as by the host's tools, and null as
// no setting.
type Values map[string]string

// UnmarshalJSON implements json.Unmarshaler. No error shows a value.
func (v *Values) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return payload.Explain(err)
	}
	*v = Values{}
	for name, value := range all {
		var s string
		switch {
		case string(value) == "null":
			continue
		case value[0] == '{' || value[0] == '[':
			return fmt.Errorf("the setting %.128q has to be a text, a number, true or false", name)
		case json.Unmarshal(value, &s) == nil:
		default:
			s = string(value)
		}
		(*v)[name] = s
	}
	return nil
}
