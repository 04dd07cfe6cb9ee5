// Package keytext reads keys and secrets in the forms that users and vaults use. All code reads them with it, so that
// one form is the same key everywhere.
//
// A text is read in one of the forms that the functions document, or refused with the remedy: it never becomes a
// different key than its owner intended. No error quotes any part of a key. The package owns no storage keys.
package keytext

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/internal/payload"
)

// SigningPrefix begins a signing secret of Standard Webhooks.
const SigningPrefix = "whsec_"

var (
	errBase64  = errors.New("it is not base64: copy the whole key, without quotes and without blanks in it")
	errPrefix  = errors.New("it is not " + SigningPrefix + " followed by base64: copy the whole secret, without quotes and without blanks in it")
	errSigning = errors.New("it is neither " + SigningPrefix + " followed by base64, nor base64 with its padding: put " + SigningPrefix +
		" in front of base64, or store " + SigningPrefix + " and the base64 of a key that is a text itself")
	errPlain = errors.New("it has a blank, quotes around it, a control character or a letter outside of ASCII: copy the key alone")
)

// Base64 decodes a key: base64 in the standard alphabet or in that of URLs, with padding or without. A byte order mark,
// white space around it and line ends in it are ignored.
func Base64(text string) ([]byte, error) {
	text = strings.NewReplacer("\r", "", "\n", "").Replace(trim(text))
	body := strings.TrimRight(text, "=")
	if padding := len(text) - len(body); body == "" || padding > 0 && len(text)%4 != 0 || padding > 2 {
		return nil, errBase64
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(body, "-_") {
		encoding = base64.RawURLEncoding
	}
	key, err := encoding.DecodeString(body)
	if err != nil {
		return nil, errBase64 // the decoder's own error has the position of the error
	}
	return key, nil
}

// Signing reads a signing secret: whsec_ and base64 as Base64 reads it; or, without the prefix, base64 in the standard
// alphabet with its padding. White space and a byte order mark around either are ignored. A value that is not text is
// the key itself.
func Signing(value []byte) ([]byte, error) {
	if !isText(value) {
		if hidden := bytes.ReplaceAll(value, []byte{0}, nil); bytes.Contains(bytes.ToLower(hidden), []byte("whsec")) {
			return nil, errPrefix // text in UTF-16, or with stray bytes
		}
		return value, nil
	}
	text := trim(string(value))
	if rest, ok := strings.CutPrefix(text, SigningPrefix); ok {
		// The alphabet of URLs has the underscore, so a prefix that is there twice would be part of another key.
		if lower := strings.ToLower(rest); rest != strings.TrimSpace(rest) || strings.HasPrefix(lower, SigningPrefix) || strings.HasPrefix(lower, "whsk_") || strings.HasPrefix(lower, "whpk_") {
			return nil, errPrefix
		}
		key, err := Base64(rest)
		if err != nil {
			return nil, errPrefix
		}
		return key, nil
	}
	if strings.Contains(strings.ToLower(text), "whsec") {
		return nil, errPrefix
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) == 0 {
		return nil, errSigning
	}
	return key, nil
}

// Plain checks a key that is used as it is written, such as a function key: printable ASCII without blanks, not in
// quotes. Other characters are lost or changed in a header or in an address, so the key would never match.
func Plain(text string) error {
	quoted := len(text) > 1 && text[0] == text[len(text)-1] && strings.Contains("\"'`", text[:1])
	if quoted || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errPlain
	}
	return nil
}

func trim(text string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), payload.ByteOrderMark))
}

// isText reports whether a value is text: a key of random bytes practically never is.
func isText(value []byte) bool {
	return utf8.Valid(value) && !bytes.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}
