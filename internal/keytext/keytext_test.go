package keytext_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/keytext"
)

// key has + and / in base64, and padding.
var key = append([]byte("0123456789abcdef01234"), 0xfb, 0xef, 0xbe, 0xff, 0xff, 0xff, 'x')

func forms() (std, raw, url, rawURL string) {
	return base64.StdEncoding.EncodeToString(key), base64.RawStdEncoding.EncodeToString(key), base64.URLEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key)
}

func TestBase64(t *testing.T) {
	t.Parallel()
	std, raw, url, rawURL := forms()
	for name, text := range map[string]string{"standard": std, "without padding": raw, "URL": url, "URL without padding": rawURL, "blank in front": " " + std,
		"line end": std + "\r\n", "wrapped": std[:20] + "\n" + std[20:], "byte order mark": "\ufeff" + std, "tab": "\t" + rawURL + "\t"} {
		if got, err := keytext.Base64(text); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, text := range map[string]string{"empty": "", "padding alone": "==", "cut": raw[:len(raw)-1], "a blank in it": std[:8] + " " + std[8:], "quotes": `"` + std + `"`,
		"both alphabets": "+-" + std, "too much padding": std + "=", "padding twice": std + "====", "padding in it": std[:8] + "=" + std[8:], "other": "geheim!", "prefix": "whsec_" + std + "!"} {
		refused(t, name, text, func() ([]byte, error) { return keytext.Base64(text) })
	}
}

func TestSigning(t *testing.T) {
	t.Parallel()
	std, raw, url, rawURL := forms()
	for name, text := range map[string]string{"standard": "whsec_" + std, "without padding": "whsec_" + raw, "URL": "whsec_" + url, "URL without padding": "whsec_" + rawURL,
		"blank in front": " whsec_" + std, "line end": "whsec_" + std + "\n", "wrapped": "whsec_" + std[:20] + "\r\n" + std[20:], "byte order mark": "\ufeffwhsec_" + std,
		"without prefix": std, "without prefix, line end": std + "\n", "the bytes": string(key)} {
		if got, err := keytext.Signing([]byte(text)); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	utf16 := strings.Join(strings.Split("whsec_"+std, ""), "\x00") + "\x00"
	for name, text := range map[string]string{"empty": "", "prefix alone": "whsec_", "upper-case prefix": "WHSEC_" + std, "another prefix": "v1,whsec_" + std, "quotes": `"whsec_` + std + `"`,
		"a blank behind the prefix": "whsec_ " + std, "hyphen": "whsec-" + std, "UTF-16": utf16, "UTF-16 with its mark": "\xff\xfe" + utf16, "twice": "whsec_whsec_" + std, "cut": "whsec_" + raw[:len(raw)-1],
		"without prefix and padding": raw, "without prefix, URL": url, "a text": "correct horse battery staple", "quoted base64": "'" + std + "'", "a letter outside of ASCII": "schlüssel" + std,
		"a byte order mark and a text": "\ufeffcorrect horse battery staple", "a zero byte at the end": "whsec_" + std + "\x00", "JSON": `{"key":"whsec_` + std + `"}`, "a setting": "SECRET=whsec_" + std} {
		refused(t, name, text, func() ([]byte, error) { return keytext.Signing([]byte(text)) })
	}
}

// refused checks that read refuses text, with an error that quotes none of it.
func refused(t *testing.T, name, text string, read func() ([]byte, error)) {
	t.Helper()
	got, err := read()
	if err == nil {
		t.Errorf("%s is read as %q", name, got)
		return
	}
	for i := 0; i+6 <= len(text); i++ {
		if part := text[i : i+6]; strings.Contains(err.Error(), part) && !strings.Contains("whsec_ followed by base64", strings.TrimSpace(part)) {
			t.Errorf("%s: the error shows %q: %v", name, part, err)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{"": true, "aB3-_/+=!": true, "a b": false, "a\n": false, `"a"`: false, "ä": false, "\ufeffa": false, "a\x00": false} {
		if err := keytext.Plain(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A text that is read is also read in its normal form.
func FuzzSigning(f *testing.F) {
	f.Add([]byte("whsec_MDEyMzQ1Njc4OWFiY2RlZg=="))
	f.Add([]byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := keytext.Signing(value)
		if err != nil || len(got) == 0 {
			return
		}
		if again, err := keytext.Signing([]byte("whsec_" + base64.StdEncoding.EncodeToString(got))); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%q: %q, %v", value, again, err)
		}
	})
}
