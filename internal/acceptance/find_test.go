package acceptance

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// pemLine is the number of bytes in a line of PEM.
const pemLine = 48

// parts returns the search terms for a value. A private key (PKCS #8) has two: its number, which is secret in any
// encoding, and a line of its PEM, which splits the number.
func parts(t *testing.T, value []byte) [][]byte {
	t.Helper()
	parsed, err := x509.ParsePKCS8PrivateKey(value)
	if err != nil {
		return [][]byte{value}
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || len(value) < 2*pemLine {
		t.Fatalf("a private key of another kind: %T", parsed)
	}
	number := testenv.Must(key.Bytes())(t)
	return [][]byte{number, value[pemLine : 2*pemLine]}
}

// TestParts looks for a private key in the forms in which it could leak.
func TestParts(t *testing.T) {
	t.Parallel()
	key := testenv.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	pkcs8 := testenv.Must(x509.MarshalPKCS8PrivateKey(key))(t)
	number := testenv.Must(key.Bytes())(t)
	for name, form := range map[string][]byte{
		"DER": pkcs8, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), "base64": []byte(base64.StdEncoding.EncodeToString(pkcs8)),
		"JWK": []byte(`{"d":"` + base64.RawURLEncoding.EncodeToString(number) + `"}`), "hex": []byte(hex.EncodeToString(pkcs8)),
	} {
		leaks := 0
		for _, part := range parts(t, pkcs8) {
			if found(form, part) {
				leaks++
			}
		}
		if leaks == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}

// found searches for a value as it is, in hexadecimal digits and in base64, and for the base64 of all of these, as
// queue messages and binary columns hold it.
func found(content, value []byte) bool {
	digits := hex.EncodeToString(value)
	forms := [][]byte{value, []byte(digits), []byte(strings.ToUpper(digits)), []byte(base64.RawStdEncoding.EncodeToString(value)),
		[]byte(base64.RawURLEncoding.EncodeToString(value))}
	for _, form := range forms {
		if bytes.Contains(content, form) {
			return true
		}
		for before := range 3 {
			if bytes.Contains(content, within(form, before)) {
				return true
			}
		}
	}
	return false
}

// within returns the part of the base64 of a longer text that depends only on form, when form starts after this many
// bytes modulo 3.
func within(form []byte, before int) []byte {
	skip := (3 - before) % 3
	whole := form[skip : len(form)-(len(form)-skip)%3]
	return []byte(base64.StdEncoding.EncodeToString(whole))
}

// TestFound looks for a value in the forms in which it could leak.
func TestFound(t *testing.T) {
	t.Parallel()
	value := []byte("\xff\xfe0123456789abcdef?>~~")
	base := base64.StdEncoding.EncodeToString
	forms := map[string]string{"raw": string(value), "base64": base(value), "URLs": base64.URLEncoding.EncodeToString(value),
		"hex": hex.EncodeToString(value), "upper-case hex": strings.ToUpper(hex.EncodeToString(value))}
	for name, form := range forms {
		for _, before := range []string{"", "a", "ab", "abc"} {
			for _, after := range []string{"", "z", "yz"} {
				text := before + form + after
				if !found([]byte(text), value) || !found([]byte(base([]byte(text))), value) {
					t.Errorf("%s between %q and %q is not found", name, before, after)
				}
			}
		}
	}
	if other := []byte("\xff\xfe0123456789abcdeg?>~~"); found([]byte(base(other)+string(other)), value) {
		t.Error("another value is found")
	}
}
