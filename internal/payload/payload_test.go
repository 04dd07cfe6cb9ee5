package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	nested := func(open, inner, shut string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"nothing":                  {"", nil},
		"arrays, one less":         {nested("[", "1", "]", MaxDepth-1), nil},
		"arrays, as deep as may":   {nested("[", "", "]", MaxDepth), nil},
		"arrays, too deep":         {nested("[", "", "]", MaxDepth+1), ErrTooDeep},
		"objects, as deep as may":  {nested(`{"a":`, "1", "}", MaxDepth), nil},
		"objects, too deep":        {nested(`{"a":`, "1", "}", MaxDepth+1), ErrTooDeep},
		"beside each other":        {"[" + strings.Repeat("[[]],", 9_999) + "[]]", nil},
		"in a text":                {`"` + strings.Repeat("[", 9_999) + `"`, nil},
		"behind a quote in a text": {`["\"` + strings.Repeat("[", 9_999) + `"]`, nil},
		"behind a text":            {`["\\",` + nested("[", "", "]", MaxDepth) + `]`, ErrTooDeep},
		"large, one less":          {`"` + strings.Repeat("x", MaxBytes-3) + `"`, nil},
		"as large as may":          {`"` + strings.Repeat("x", MaxBytes-2) + `"`, nil},
		"too large":                {`"` + strings.Repeat("x", MaxBytes-1) + `"`, ErrTooLarge},
	} {
		if err := Check([]byte(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A reader accepts the texts that Check accepts, including their wrapping, and both count alike.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{`{"a":[1,{"b":"]\"["}]}`, strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), `"\\"`, `{"a":"[`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			_ = Check(text) // it only must not fail
			return
		}
		var v any
		testenv.OK(t, json.Unmarshal(text, &v))
		if want := depth(v) > MaxDepth; errors.Is(Check(text), ErrTooDeep) != want {
			t.Errorf("%q is %d deep: %v", text, depth(v), Check(text))
		}
		wrapped := strings.Repeat(`{"a":[`, 100) + string(text) + strings.Repeat(`]}`, 100)
		if Check(text) == nil && json.Unmarshal([]byte(wrapped), &v) != nil {
			t.Errorf("%q cannot be read in what it is wrapped in", text)
		}
	})
}

func depth(v any) int {
	deepest := -1
	switch v := v.(type) {
	case []any:
		deepest = 0
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	case map[string]any:
		deepest = 0
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	}
	return deepest + 1
}

// Marshal writes the same as an encoder without escapes for HTML, in texts and in raw JSON.
func TestMarshal(t *testing.T) {
	for _, text := range []string{"", "plain", "<a href=\"b&c\">", "\u2028\u2029", "\x00\x1f\x7f", "\xff", `\u003c`, "𝄞 é"} {
		raw := json.RawMessage(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", "", "\x1f", "").Replace(strings.ToValidUTF8(text, "")) + `"`)
		for _, v := range []any{text, raw, map[string]any{text: raw}} {
			var want bytes.Buffer
			encoder := json.NewEncoder(&want)
			encoder.SetEscapeHTML(false)
			testenv.OK(t, encoder.Encode(v))
			if got, err := Marshal(v); err != nil || string(got)+"\n" != want.String() {
				t.Errorf("%q: %s, %v, want %s", v, got, err, &want)
			}
		}
	}
}
