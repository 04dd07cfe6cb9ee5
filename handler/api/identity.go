package api

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/engine"
)

// keyIdentity is who calls with a function key: nobody in particular.
const keyIdentity = "function-key"

// maxPrincipal bounds the header in which the platform says who calls, in bytes: what a web server takes of one.
const maxPrincipal = 16 << 10

// principal is a caller as the platform's Easy Auth describes it.
type principal struct {
	NameType string  `json:"name_typ"`
	Claims   []claim `json:"claims"`
}

type claim struct {
	Type  string `json:"typ"`
	Value string `json:"val"`
}

// identity is who sends the request. The header is the platform's only where the platform has Easy Auth enabled, which
// then takes it off what comes from outside; elsewhere anybody can write it, so it says nothing.
func (a *api) identity(r *request) string {
	if !a.easyAuth {
		return keyIdentity
	}
	header := r.http.Header.Get("X-MS-CLIENT-PRINCIPAL")
	if header == "" || len(header) > maxPrincipal {
		return keyIdentity
	}
	text, err := base64.StdEncoding.DecodeString(header)
	var p principal
	if err != nil || json.Unmarshal(text, &p) != nil {
		return keyIdentity
	}
	for _, typ := range []string{p.NameType, "preferred_username", "name", "http://schemas.microsoft.com/identity/claims/objectidentifier", "oid", "appid"} {
		at := slices.IndexFunc(p.Claims, func(c claim) bool { return typ != "" && c.Type == typ && c.Value != "" })
		if at >= 0 {
			return nameOf(p.Claims[at].Value)
		}
	}
	return keyIdentity
}

// nameOf is a name as it is stored and shown: what cannot be seen is replaced, what is too long is cut.
func nameOf(text string) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	for len(text) > engine.MaxIdentity {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	return text
}
