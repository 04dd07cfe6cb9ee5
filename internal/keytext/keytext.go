// Package keytext reads keys and secrets as people and vaults hand them out. It is the only reader of such texts, so that one form
// is the same key everywhere.
//
// It promises that a text is read in one of the forms that the functions state, or refused with the remedy: it never becomes another
// key than its owner meant. No error shows any part of a key. It owns no storage keys.
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

// Base64 decodes a key: base64 in the standard alphabet or in that of URLs, with padding or without. A byte order mark, white space
// around it and line ends in it are no part of the key.
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
		return nil, errBase64 // the decoder's own error has the position of the fault
	}
	return key, nil
}

// Signing reads a signing secret: whsec_ and base64 as Base64 reads it; or, without the prefix, base64 in the standard alphabet with its
// padding; white space and a byte order mark around either are no part of it. A value that is not text is the key itself.
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

// Plain checks a key that is used as it is written, such as a function key: printable ASCII without blanks, not in quotes. Another
// character gets lost or changed in a header or in an address, so the key would never fit.
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

// isText says whether a value is text: a key of random bytes practically never is.
func isText(value []byte) bool {
	return utf8.Valid(value) && !bytes.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}
