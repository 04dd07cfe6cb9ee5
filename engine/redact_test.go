package engine

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRedactText(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("Ab1+", 21) + "Zz=="
	tests := map[string]struct{ in, want string }{
		"nothing":           {"no such vault: hmac-keys (404)", "no such vault: hmac-keys (404)"},
		"connection string": {"DefaultEndpointsProtocol=https;AccountName=dev;AccountKey=abc+/==;BlobEndpoint=http://x/", "DefaultEndpointsProtocol=https;AccountName=dev;AccountKey=[redacted];BlobEndpoint=http://x/"},
		"shared access":     {"SharedAccessSignature=sv=1&sig=a%2Bb;x", "SharedAccessSignature=[redacted];x"},
		"shared header":     {"SharedAccessSignature sr=u&sig=abc&se=1", "SharedAccessSignature [redacted]"},
		"signed URL":        {"GET https://a/b?sv=2020&sig=abc%3D&se=1 failed", "GET https://a/b?sv=2020&sig=[redacted]&se=1 failed"},
		"function key":      {"POST http://a/api/x?clientId=c&code=abc== 401", "POST http://a/api/x?clientId=c&code=[redacted] 401"},
		"bearer":            {"sent Authorization: Bearer abc.def, got 401", "sent Authorization: Bearer [redacted], got 401"},
		"lone bearer":       {"used bearer abc", "used bearer [redacted]"},
		"basic":             {"Authorization: Basic dTpw", "Authorization: Basic [redacted]"},
		"basic word":        {"basic authentication is off", "basic authentication is off"},
		"shared key":        {"SharedKey account:abc=", "SharedKey [redacted]"},
		"header":            {"x-functions-key: abc\r\nAccept: x", "x-functions-key: [redacted]\r\nAccept: x"},
		"cookie":            {"Cookie: a=b; c=d\nHost: x", "Cookie: [redacted]\nHost: x"},
		"token":             {"got eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln.", "got [redacted]"},
		"private key":       {"a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"},
		"cut private key":   {"a -----BEGIN PRIVATE KEY-----\nMII", "a [redacted]"},
		"public key":        {"-----BEGIN PUBLIC KEY-----\nMII\n-----END PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----\nMII\n-----END PUBLIC KEY-----"},
		"URL password":      {"dial postgres://user:pa+ss@host:5432/db", "dial postgres://user:[redacted]@host:5432/db"},
		"account key":       {"key " + key + " is old", "key [redacted] is old"},
		"form":              {"client_id=a&client_secret=b&grant_type=c", "client_id=a&client_secret=[redacted]&grant_type=c"},
		"quoted":            {`password = "a b" x`, `password = [redacted] x`},
		"member":            {`body: {"keyId":"k","secretText":"a\"b","n":1}`, `body: {"keyId":"k","secretText":"[redacted]","n":1}`},
		"number member":     {`{"password": 1234}`, `{"password": "[redacted]"}`},
		"escaped member":    {`"{\"keyId\":\"k\",\"secretText\":\"a\\\"b\"}"`, `"{\"keyId\":\"k\",\"secretText\":\"[redacted]\"}"`},
		"secret name":       {"secretName=hmac secretVersion=7 keyName=k", "secretName=hmac secretVersion=7 keyName=k"},
	}
	for name, test := range tests {
		if got := Redact(test.in); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, test.want)
		}
	}
}

func TestRedactJSON(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"nothing":       {"", ""},
		"no secret":     {` { "b" : 1.50e+2, "a":[1, true ,null] } `, ` { "b" : 1.50e+2, "a":[1, true ,null] } `},
		"names":         {`{"secretName":"a","secretVersion":"b","keyName":"c","keyVersion":"d","tokenType":"e"}`, `{"secretName":"a","secretVersion":"b","keyName":"c","keyVersion":"d","tokenType":"e"}`},
		"any case":      {`{"SecretText":"a","client_secret":"a","Client-Secret":"a","PASSWORD":"a"}`, `{"SecretText":"[redacted]","client_secret":"[redacted]","Client-Secret":"[redacted]","PASSWORD":"[redacted]"}`},
		"all names":     {`{"privateKey":"a","accountKey":"a","sas":"a","connectionString":"a","accessToken":"a","authorization":"a"}`, `{"privateKey":"[redacted]","accountKey":"[redacted]","sas":"[redacted]","connectionString":"[redacted]","accessToken":"[redacted]","authorization":"[redacted]"}`},
		"escaped name":  {`{"pass\u0077ord":"a"}`, `{"pass\u0077ord":"[redacted]"}`},
		"kinds":         {`{"password":1.0,"token":null,"secret":true}`, `{"password":"[redacted]","token":null,"secret":true}`},
		"nested":        {`{"a":[{"b":{"password":"x"}}],"n":123456789012345678901}`, `{"a":[{"b":{"password":"[redacted]"}}],"n":123456789012345678901}`},
		"within":        {`{"secret":{"name":"n","version":"v","value":"x","more":["y",{"z":1}]}}`, `{"secret":{"name":"n","version":"v","value":"[redacted]","more":["[redacted]",{"z":"[redacted]"}]}}`},
		"pair":          {`[{"name":"ClientSecret","value":"x"},{"name":"Color","value":"red"}]`, `[{"name":"ClientSecret","value":"[redacted]"},{"name":"Color","value":"red"}]`},
		"listed keys":   {`{"keys":[{"keyName":"key1","value":"x","permissions":"Full"}]}`, `{"keys":[{"keyName":"key1","value":"[redacted]","permissions":"Full"}]}`},
		"text inside":   {`{"message":"<b> AccountKey=abc;x"}`, `{"message":"<b> AccountKey=[redacted];x"}`},
		"JSON inside":   {`{"body":"{\"password\":\"abc\"}"}`, `{"body":"{\"password\":\"[redacted]\"}"}`},
		"twice":         {`{"password":"a","password":"b"}`, `{"password":"[redacted]","password":"[redacted]"}`},
		"just a string": {`"AccountKey=abc"`, `"AccountKey=[redacted]"`},
		"already":       {`{"password":"[redacted]"}`, `{"password":"[redacted]"}`},
		"empty":         {`{"a":{},"b":[]}`, `{"a":{},"b":[]}`},
		"not JSON":      {`{"password":"abc"`, `"{\"password\":\"[redacted]\""`},
		"two values":    {`1 2`, `"1 2"`},
	}
	for name, test := range tests {
		if got := RedactJSON(json.RawMessage(test.in)); string(got) != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("AccountKey=abc;x Bearer y")
	f.Add(`{\"password\":\"x\"} -----BEGIN PRIVATE KEY-----`)
	f.Fuzz(func(t *testing.T, text string) {
		got := Redact(text)
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q became invalid: %q", text, got)
		}
		if !strings.Contains(got, redacted) && got != text {
			t.Errorf("%q changed to %q", text, got)
		}
	})
}

func FuzzRedactJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1.50,{"secretText":"x","n":"Bearer y"}],"password":{"value":1,"name":"k"}}`))
	f.Add([]byte(` {"name":"token","value":-0.0} `))
	f.Add([]byte("\"\xff\""))
	f.Add([]byte(`{"`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		before := bytes.Clone(doc)
		got := RedactJSON(doc)
		if !bytes.Equal(doc, before) {
			t.Fatalf("the argument changed from %q to %q", before, doc)
		}
		if len(doc) > 0 && !json.Valid(got) {
			t.Fatalf("%q became %q, which is not JSON", doc, got)
		}
		if !json.Valid(doc) {
			return
		}
		// Token by token: everything is what it was, or a string that says that something was redacted.
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
			if werr != nil || herr != nil || w != h && !strings.Contains(text, redacted) {
				t.Fatalf("%q: token %v (%v) became %v (%v)", doc, w, werr, h, herr)
			}
		}
	})
}
