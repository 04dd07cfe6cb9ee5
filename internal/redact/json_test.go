package redact

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"nothing":        {"", ""},
		"no secret":      {` { "b" : 1.50e+2, "a":[1, true ,null] } `, ` { "b" : 1.50e+2, "a":[1, true ,null] } `},
		"names":          {`{"secretName":"a","secretVersion":"b","keyName":"c","keyVersion":"d","tokenType":"e"}`, `{"secretName":"a","secretVersion":"b","keyName":"c","keyVersion":"d","tokenType":"e"}`},
		"any case":       {`{"SecretText":"a","client_secret":"a","Client-Secret":"a","PASSWORD":"a"}`, `{"SecretText":"[redacted]","client_secret":"[redacted]","Client-Secret":"[redacted]","PASSWORD":"[redacted]"}`},
		"all names":      {`{"privateKey":"a","accountKey":"a","sas":"a","connectionString":"a","accessToken":"a","authorization":"a"}`, `{"privateKey":"[redacted]","accountKey":"[redacted]","sas":"[redacted]","connectionString":"[redacted]","accessToken":"[redacted]","authorization":"[redacted]"}`},
		"escaped name":   {`{"pass\u0077ord":"a"}`, `{"pass\u0077ord":"[redacted]"}`},
		"kinds":          {`{"password":1.0,"token":null,"secret":true}`, `{"password":"[redacted]","token":null,"secret":true}`},
		"no text":        {`{"password":""}`, `{"password":""}`},
		"counts":         {`{"tokens":5,"tokensLeft":"5","tokenIndex":5}`, `{"tokens":5,"tokensLeft":"[redacted]","tokenIndex":5}`},
		"nested":         {`{"a":[{"b":{"password":"x"}}],"n":123456789012345678901}`, `{"a":[{"b":{"password":"[redacted]"}}],"n":123456789012345678901}`},
		"within":         {`{"secret":{"name":"n","version":"v","value":"x","more":["y",{"z":1}]}}`, `{"secret":{"name":"n","version":"v","value":"[redacted]","more":["[redacted]",{"z":"[redacted]"}]}}`},
		"pair":           {`[{"name":"ClientSecret","value":"x"},{"name":"Color","value":"red"}]`, `[{"name":"ClientSecret","value":"[redacted]"},{"name":"Color","value":"red"}]`},
		"pair inside":    {`{"body":"[{\"name\":\"ClientSecret\",\"value\":\"x\"}]"}`, `{"body":"[{\"name\":\"ClientSecret\",\"value\":\"[redacted]\"}]"}`},
		"listed keys":    {`{"keys":[{"keyName":"key1","value":"x","permissions":"Full"}]}`, `{"keys":[{"keyName":"key1","value":"[redacted]","permissions":"Full"}]}`},
		"text inside":    {`{"message":"<b> AccountKey=abc;x"}`, `{"message":"<b> AccountKey=[redacted];x"}`},
		"JSON inside":    {`{"body":"{\"password\":\"abc\"}"}`, `{"body":"{\"password\":\"[redacted]\"}"}`},
		"secret as name": {`{"password=abc":1}`, `{"password=[redacted]":1}`},
		"twice":          {`{"password":"a","password":"b"}`, `{"password":"[redacted]","password":"[redacted]"}`},
		"just a string":  {`"AccountKey=abc"`, `"AccountKey=[redacted]"`},
		"already":        {`{"password":"[redacted]"}`, `{"password":"[redacted]"}`},
		"empty":          {`{"a":{},"b":[]}`, `{"a":{},"b":[]}`},
		"not JSON":       {`{"password":"abc"`, `"{\"password\":\"[redacted]\""`},
		"two values":     {`1 2`, `"1 2"`},
	}
	for name, test := range tests {
		if got := JSON(json.RawMessage(test.in)); string(got) != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1.50,{"secretText":"x","n":"Bearer y"}],"password":{"value":1,"name":"k"}}`))
	f.Add([]byte(` {"name":"token","value":-0.0} `))
	f.Add([]byte(`{"body":"[{\"name\":\"ClientSecret\",\"value\":\"x\"}]"}`))
	f.Add([]byte("\"\xff\""))
	f.Add([]byte(" pAss 0A\xb20"))
	f.Add([]byte(`{"`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		before := bytes.Clone(doc)
		got := JSON(doc)
		if !bytes.Equal(doc, before) {
			t.Fatalf("the argument changed from %q to %q", before, doc)
		}
		if len(doc) > 0 && !json.Valid(got) {
			t.Fatalf("%q became %q, which is not JSON", doc, got)
		}
		if again := JSON(got); len(doc) > 0 && !bytes.Equal(again, got) {
			t.Fatalf("%q became %q, and that %q", doc, got, again)
		}
		if !json.Valid(doc) {
			return
		}
		// Each token is unchanged, or a string with a mark.
		want, have := json.NewDecoder(bytes.NewReader(doc)), json.NewDecoder(bytes.NewReader(got))
		want.UseNumber()
		have.UseNumber()
		for {
			w, werr := want.Token()
			h, herr := have.Token()
			if werr == io.EOF && herr == io.EOF {
				return
			}
			text, _ := h.(string)
			if werr != nil || herr != nil || w != h && !strings.Contains(text, mark) {
				t.Fatalf("%q: token %v (%v) became %v (%v)", doc, w, werr, h, herr)
			}
		}
	})
}
