package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/vibedata/roundhouse/internal/payload"
)

// maxToken bounds a continuation token, in bytes.
const maxToken = 2 << 10

// pageToken is the content of a continuation token of the orchestrations. It is no secret: it gives access only to
// rows of the same query.
type pageToken struct {
	Fingerprint string `json:"f"`
	Place       string `json:"p"`
}

// sealToken returns the continuation token for a place behind a page, "" for none.
func sealToken(place, fingerprint string) string {
	if place == "" {
		return ""
	}
	text, _ := payload.Marshal(pageToken{fingerprint, place}) // strings always marshal
	return base64.RawURLEncoding.EncodeToString(text)
}

// openToken returns the place of a token, "" for none. It accepts only a token that sealToken made for this filter.
func openToken(token, fingerprint string) (string, error) {
	if token == "" {
		return "", nil
	}
	var t pageToken
	text, err := base64.RawURLEncoding.DecodeString(token)
	if len(token) > maxToken || err != nil || json.Unmarshal(text, &t) != nil || t.Fingerprint != fingerprint || sealToken(t.Place, fingerprint) != token {
		return "", badToken()
	}
	return t.Place, nil
}

// fingerprintOf identifies a filter in its tokens.
func fingerprintOf(parts ...any) string {
	text, _ := json.Marshal(parts) // strings and times always marshal
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

func badToken() *failure {
	return &failure{status: http.StatusBadRequest, problem: problem{
		Code:    codeInvalidToken,
		Message: "The continuation token does not belong to this query: repeat the parameters that it was given for, or leave it out.",
		Target:  "continuationToken",
	}}
}
