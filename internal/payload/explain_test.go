package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	type part struct{ Deep int }
	for text, want := range map[string]string{
		`{"Name": 1}`:          "Name is a number, and has to be a string",
		`{"Small": 300}`:       "Small is a number 300, and has to be a whole number in its range",
		`{"On": "yes"}`:        "On is a string, and has to be true or false",
		`{"Of": 1}`:            "Of is a number, and has to be an array",
		`{"Part": []}`:         "Part is an array, and has to be an object",
		`{"Part":{"Deep":""}}`: "Part.Deep is a string, and has to be a whole number in its range",
		`{"Rate": "x"}`:        "Rate is a string, and has to be a number",
		`[]`:                   "the value is an array, and has to be an object",
		`{"other": 1}`:         `unknown field "other"`,
		`{"Name": x}`:          "this is no JSON, at byte 10: invalid character 'x' looking for beginning of value",
	} {
		var v struct {
			Name  string
			Small uint8
			On    bool
			Of    []string
			Part  part
			Rate  float64
		}
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		got := Explain(d.Decode(&v))
		if got == nil || got.Error() != want || strings.Contains(got.Error(), "struct") {
			t.Errorf("%s: %v", text, got)
		}
	}
	if err := Explain(io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) || Explain(nil) != nil {
		t.Error(err)
	}
}
