package queues

import (
	"encoding/base64"
	"testing"
	"unicode/utf8"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"our own", "eyJhIjoxfQ==", `{"a":1}`},
		{"plain JSON", `{"a":1}`, `{"a":1}`},
		{"plain text", "hello world", "hello world"},
		{"empty", "", ""},
		{"unpadded", "aGVsbG8", "aGVsbG8"},
		{"URL alphabet", "8J-Sqg==", "8J-Sqg=="},
		{"with a line break", "aGVs\r\nbG8=", "hello"},
		{"only line breaks", "\r\n", "\r\n"},
		{"base64 of what is not UTF-8", "/////w==", "/////w=="},
		{"a number that is base64 of what is not UTF-8", "1234", "1234"},
		{"with blanks", " aGVsbG8= ", " aGVsbG8= "},
		{"not UTF-8 itself", "\xff\xfe", "\xff\xfe"},
		{"base64 of base64", "YUdWc2JHOD0=", "aGVsbG8="},
	}
	for _, test := range tests {
		if got := Decode(test.text); string(got) != test.want {
			t.Errorf("%s: Decode(%q) = %q, want %q", test.name, test.text, got, test.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "eyJhIjoxfQ==", `{"a":1}`, "1234", "\xff", "aGVs\nbG8="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Decode(text)
		if got == nil {
			t.Fatalf("Decode(%q) is nil", text)
		}
		plain, err := base64.StdEncoding.DecodeString(text)
		if isBase64 := err == nil && len(plain) > 0 && utf8.Valid(plain); !isBase64 && string(got) != text {
			t.Errorf("Decode(%q) = %q changed what is not base64", text, got)
		}
		// A text body that Send wrote is read unchanged.
		if text != "" && utf8.ValidString(text) {
			if back := Decode(encode([]byte(text))); string(back) != text {
				t.Errorf("%q came back as %q", text, back)
			}
		}
	})
}
