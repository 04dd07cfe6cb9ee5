package engine

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/internal/payload"
)

// tokenVersion changes when older tokens would be misread.
const tokenVersion = 1

// maxToken bounds a token before it is decoded, in bytes; a place and an engine with any name take less.
const maxToken = 2 << 10

// pageToken is the content of a continuation token: continue behind this row. It needs no state between pages. It is
// not secret, because it gives access only to rows of the same query.
type pageToken struct {
	Version     int    `json:"v"`
	Fingerprint string `json:"f"`
	Place       string `json:"p"`
	Engine      string `json:"e"`
}

func encodeToken(fingerprint string, at position) string {
	// Marshalling numbers and strings cannot fail.
	text, _ := payload.Marshal(pageToken{tokenVersion, fingerprint, at.place, at.engine})
	return base64.RawURLEncoding.EncodeToString(text)
}

// decodeToken returns the position in a token, nil for none. Tokens come from outside, so everything is checked: only a
// token that encodeToken makes for this filter is accepted.
func decodeToken(token, fingerprint string, engines []string) (*position, error) {
	if token == "" {
		return nil, nil
	}
	if len(token) > maxToken {
		return nil, fmt.Errorf("%w: it has %d characters", ErrToken, len(token))
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, fmt.Errorf("%w: it is damaged", ErrToken)
	}
	var t pageToken
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, fmt.Errorf("%w: it is damaged", ErrToken)
	}
	at := position{t.Place, t.Engine}
	switch {
	case encodeToken(t.Fingerprint, at) != token || !validPlace(t.Place):
		return nil, fmt.Errorf("%w: it is damaged", ErrToken)
	case t.Fingerprint != fingerprint || !slices.Contains(engines, t.Engine):
		return nil, fmt.Errorf("%w: repeat the parameters that it was given for, or leave it out", ErrToken)
	}
	return &at, nil
}

func validPlace(s string) bool {
	if len(s) != invertedSize+1+digestSize || s[invertedSize] != '-' {
		return false
	}
	for i := range len(s) {
		digit := s[i] >= '0' && s[i] <= '9'
		hex := i > invertedSize && s[i] >= 'a' && s[i] <= 'f'
		if !digit && !hex && i != invertedSize {
			return false
		}
	}
	return true
}

// fingerprint identifies a filter in its tokens.
func fingerprint(parts ...any) string {
	// Marshalling strings and times cannot fail.
	text, _ := json.Marshal(parts)
	return digest(string(text))
}
