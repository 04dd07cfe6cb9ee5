package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/redact/redacttest"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// TestSamples puts each secret into typical texts.
func TestSamples(t *testing.T) {
	t.Parallel()
	list := redacttest.Secrets()
	if len(list) < 100 {
		t.Fatalf("%d samples, at least 100 are wanted", len(list))
	}
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s.Kind] {
			t.Errorf("there are two samples of the kind %q", s.Kind)
		}
		seen[s.Kind] = true
		t.Run(s.Kind, func(t *testing.T) {
			t.Parallel()
			for place, text := range places(s) {
				check(t, s, place, Text(text))
			}
			for place, doc := range documents(t, s) {
				got := JSON(doc)
				if !json.Valid(got) {
					t.Errorf("%s: %s is no JSON", place, got)
				}
				check(t, s, place, string(got))
				check(t, s, place+" as a text", Text(string(doc)))
			}
		})
	}
}

// check fails when a part of the secret remains.
func check(t *testing.T, s redacttest.Sample, place, got string) {
	t.Helper()
	if part := s.FoundIn(got); part != "" {
		t.Errorf("%s: %q of the secret is left in %q", place, part, got)
	}
}

func places(s redacttest.Sample) map[string]string {
	err := fmt.Errorf("activity Charge: %w", errors.Join(errors.New("post to host: 500"), fmt.Errorf("answer: %w", errors.New(s.Text))))
	texts := map[string]string{
		"alone":                s.Text,
		"at the start":         s.Text + " was refused",
		"at the end":           "refused: " + s.Text,
		"in a sentence":        "The receiver said " + s.Text + " and hung up.",
		"in parentheses":       "refused (" + s.Text + ")",
		"in quotes":            fmt.Sprintf("refused %q", s.Text),
		"in brackets":          "[" + s.Text + "]",
		"on a line":            "a\n" + s.Text + "\nb",
		"behind other letters": "Grüße " + s.Text + " 世界",
		"in an error chain":    err.Error(),
		"in a struct":          fmt.Sprintf("%+v", struct{ Text string }{s.Text}),
		"twice":                s.Text + "\n" + s.Text,
	}
	if strings.ContainsAny(s.Text, " \"<'") || strings.Contains(s.Text, "://") {
		texts["in a URL"] = "GET https://api.example.com/callback?text=" + strings.ReplaceAll(s.Text, " ", "%20") + "&n=1"
	} else {
		texts["in a URL"] = "GET https://api.example.com/callback?text=" + s.Text + "&n=1"
	}
	if !strings.ContainsAny(s.Secret, "+/=@ ") && !strings.Contains(s.Text, "@") && !strings.ContainsAny(s.Text, "<\"{") {
		texts["in a URL, escaped"] = "GET https://api.example.com/callback?text=" + url.QueryEscape(s.Text) + "&n=1"
	}
	return texts
}

// documents returns JSON with the text as a value, and in strings of strings.
func documents(t *testing.T, s redacttest.Sample) map[string]json.RawMessage {
	t.Helper()
	docs := map[string]json.RawMessage{}
	for _, escape := range []bool{true, false} {
		if escape && strings.Contains(s.Text, "</") {
			continue // XML elements are not searched behind these escapes
		}
		encode := func(v any) json.RawMessage {
			var out bytes.Buffer
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(escape)
			testenv.OK(t, encoder.Encode(v))
			return bytes.TrimSpace(out.Bytes())
		}
		for place, doc := range documentsOf(s, encode) {
			docs[fmt.Sprintf("%s (escaping %v)", place, escape)] = doc
		}
	}
	return docs
}

func documentsOf(s redacttest.Sample, encode func(any) json.RawMessage) map[string]json.RawMessage {
	inner := encode(map[string]any{"message": s.Text, "n": 1})
	outer := encode(map[string]any{"body": string(inner)})
	return map[string]json.RawMessage{
		"a string":           encode(s.Text),
		"a value":            inner,
		"an element":         encode([]any{1, []string{"a", s.Text}}),
		"a name":             encode(map[string]int{s.Text: 1}),
		"in a string":        outer,
		"in a string of one": encode([]string{string(outer)}),
		"in a text":          encode(map[string]string{"error": "the answer was " + string(inner)}),
	}
}

// TestHarmless checks for false alarms.
func TestHarmless(t *testing.T) {
	t.Parallel()
	list := redacttest.Harmless()
	if len(list) < 60 {
		t.Fatalf("%d texts, at least 60 are wanted", len(list))
	}
	for _, text := range list {
		if got := Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		if sentence := "it said " + text + ", and went on"; !strings.HasPrefix(text, `{"`) && Text(sentence) != sentence {
			t.Errorf("%q became %q", sentence, Text(sentence))
		}
		doc := testenv.Must(json.Marshal(map[string]string{"message": text}))(t)
		if got := JSON(doc); string(got) != string(doc) {
			t.Errorf("%s became %s", doc, got)
		}
		if json.Valid([]byte(text)) {
			if got := JSON(json.RawMessage(text)); string(got) != text {
				t.Errorf("%s became %s", text, got)
			}
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("Ab1+", 21) + "Zz=="
	tests := map[string]struct{ in, want string }{
		"nothing":           {"no such vault: hmac-keys (404)", "no such vault: hmac-keys (404)"},
		"connection string": {"DefaultEndpointsProtocol=https;AccountName=dev;AccountKey=abc+/==;BlobEndpoint=http://x/", "DefaultEndpointsProtocol=https;AccountName=dev;AccountKey=[redacted];BlobEndpoint=http://x/"},
		"shared access":     {"SharedAccessSignature=sv=1&sig=a%2Bb;x", "SharedAccessSignature=[redacted]&sig=[redacted];x"},
		"shared header":     {"SharedAccessSignature sr=u&sig=abc&se=1", "SharedAccessSignature [redacted]"},
		"signed URL":        {"GET https://a/b?sv=2020&sig=abc%3D&se=1 failed", "GET https://a/b?sv=2020&sig=[redacted]&se=1 failed"},
		"function key":      {"POST http://a/api/x?clientId=c&code=abc== 401", "POST http://a/api/x?clientId=c&code=[redacted] 401"},
		"bearer":            {"sent Authorization: Bearer abc.def, got 401", "sent Authorization: Bearer [redacted], got 401"},
		"lone bearer":       {"used bearer abc123", "used bearer [redacted]"},
		"basic":             {"Authorization: Basic dTpw", "Authorization: Basic [redacted]"},
		"shared key":        {"SharedKey account:abc=", "SharedKey [redacted]"},
		"header":            {"x-functions-key: abc\r\nAccept: x", "x-functions-key: [redacted]\r\nAccept: x"},
		"cookie":            {"Cookie: a=b; c=d\nHost: x", "Cookie: [redacted]\nHost: x"},
		"token":             {"got eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln.", "got [redacted]"},
		"private key":       {"a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"},
		"cut private key":   {"a -----BEGIN PRIVATE KEY-----\nMII", "a [redacted]"},
		"URL password":      {"dial postgres://user:pa+ss@host:5432/db", "dial postgres://user:[redacted]@host:5432/db"},
		"account key":       {"key " + key + " is old", "key [redacted] is old"},
		"form":              {"client_id=a&client_secret=b&grant_type=c", "client_id=a&client_secret=[redacted]&grant_type=c"},
		"within a value":    {"msg=password=abc", "msg=password=[redacted]"},
		"quoted":            {`password = "a b" x`, `password = "[redacted]" x`},
		"member":            {`body: {"keyId":"k","secretText":"a\"b","n":1}`, `body: {"keyId":"k","secretText":"[redacted]","n":1}`},
		"number member":     {`{"password": 1234}`, `{"password": "[redacted]"}`},
		"escaped member":    {`"{\"keyId\":\"k\",\"secretText\":\"a\\\"b\"}"`, `"{\"keyId\":\"k\",\"secretText\":\"[redacted]\"}"`},
		"slash in a member": {`{"secret":"a\\","n":"b"}`, `{"secret":"[redacted]","n":"b"}`},
		"cut member":        {`{"secret":"abc`, `{"secret":"[redacted]`},
		"blanks":            {"Server=s;Password=a b c;Encrypt=true", "Server=s;Password=[redacted];Encrypt=true"},
		"no blanks":         {"AccountName=dev;AccountKey=abc is old", "AccountName=dev;AccountKey=[redacted] is old"},
		"two at once":       {"password=Bearer abc123 x", "password=[redacted] [redacted] x"},
	}
	for name, test := range tests {
		if got := Text(test.in); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, test.want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range redacttest.Secrets() {
		f.Add(s.Text)
	}
	for _, text := range redacttest.Harmless() {
		f.Add(text)
	}
	f.Add(`{\"password\":\"x\"} -----BEGIN PRIVATE KEY-----`)
	f.Fuzz(func(t *testing.T, text string) {
		got := Text(text)
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q became invalid: %q", text, got)
		}
		if !strings.Contains(got, mark) && got != text {
			t.Errorf("%q changed to %q", text, got)
		}
		// Each secret is at least a byte, and its mark has a bounded length.
		if len(got) > (len(mark)+2*maxName+2)*len(text) {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
		if again := Text(got); again != got {
			t.Errorf("%q became %q, and that %q", text, got, again)
		}
	})
}
