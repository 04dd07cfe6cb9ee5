package jsonc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/jsonc"
)

func TestStandard(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string][2]string{
		"as it is":          {`{"a":[1,2],"b":"x"}`, `{"a":[1,2],"b":"x"}`},
		"byte order mark":   {"\ufeff{}", `{}`},
		"comment":           {"// c\n{\"a\":1} // d", `{"a":1}`},
		"comment at lines":  {"{\r\n\"a\":1, // b, }\r\n\"c\":2}", `{"a":1,"c":2}`},
		"block":             {`{/* "x", } */"a":/**/1}`, `{"a":1}`},
		"comma":             {`{"a":[1,2,],"b":{"c":1 , } ,}`, `{"a":[1,2],"b":{"c":1}}`},
		"comma and comment": {"{\"a\":1, // last\n}", `{"a":1}`},
		"in texts":          {`{"a":"// no, ]","b":"/* no */","c":"\",}"}`, `{"a":"// no, ]","b":"/* no */","c":"\",}"}`},
	} {
		got := jsonc.Standard([]byte(tt[0]))
		var value, want any
		if err := json.Unmarshal(got, &value); err != nil || json.Unmarshal([]byte(tt[1]), &want) != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if diff := cmp.Diff(want, value); diff != "" || len(got) != len(tt[0]) {
			t.Errorf("%s: %d of %d bytes (-want +got):\n%s", name, len(got), len(tt[0]), diff)
		}
	}
	for _, bad := range []string{`{,}`, `[,]`, `{"a":1,,}`, `{"a":,}`, `/* {}`, `{"a":1}}`, `{"a" 1}`, `{'a':1}`, `{"a":1;}`, ``} {
		if err := jsonc.Unmarshal([]byte(bad), new(any)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	var v jsonc.Values
	err := jsonc.Unmarshal([]byte(`{"text":"x","port":5432,"big":12345678901234567890,"on":true,"off":false,"none":null,"empty":"",}`), &v)
	if diff := cmp.Diff(jsonc.Values{"text": "x", "port": "5432", "big": "12345678901234567890", "on": "true", "off": "false", "empty": ""}, v); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{`{"a":{"secret":"geheim"}}`, `{"a":["geheim"]}`, `["geheim"]`, `"geheim"`} {
		if err := jsonc.Unmarshal([]byte(bad), &v); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// JSON is unchanged, and no byte moves.
func FuzzStandard(f *testing.F) {
	for _, text := range []string{`{"a":[1,2,],}`, "// c\n{}", `{"a":"\\"}`, "\ufeff[/**/]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out := jsonc.Standard(text)
		if len(out) != len(text) {
			t.Fatalf("%q: %d bytes", text, len(out))
		}
		if json.Valid(text) && string(out) != string(text) {
			t.Errorf("%q became %q", text, out)
		}
		if again := jsonc.Standard(out); json.Valid(out) && string(again) != string(out) {
			t.Errorf("%q became %q", out, again)
		}
	})
}
