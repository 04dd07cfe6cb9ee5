package api

import (
	"encoding/base64"
	"testing"

	"github.com/vibedata/roundhouse/engine"
)

func TestShownMessage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ message, want, encoding string }{
		"a document":   {`{"n": 1, "password":"abc"}`, `{"n": 1, "password":"[redacted]"}`, ""},
		"text":         {`password=abc`, `password=[redacted]`, ""},
		"no text":      {"\xffpassword=abc", base64.StdEncoding.EncodeToString([]byte("\xffpassword=[redacted]")), "base64"},
		"nothing":      {"", "", ""},
		"no secret":    {`{"n": 1} `, `{"n": 1} `, ""},
		"other binary": {"\xff\x00", "/wA=", "base64"},
	} {
		text, encoding := shownMessage(engine.DeadLetter{OriginalMessage: []byte(test.message)})
		if text != test.want || encoding != test.encoding {
			t.Errorf("%s: %q in %q, not %q in %q", name, text, encoding, test.want, test.encoding)
		}
	}
}
