package api

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/engine"
)

// keyIdentity is who calls with a function key: nobody in particular.
const keyIdentity = "function-key"

// identity is the name of who sends the request.
func (a *api) identity(r *request) string {
	p := a.principal(r)
	if p == nil {
		return keyIdentity
	}
	return nameOf(cmp.Or(p.first(p.NameType, "preferred_username", "name", "http://schemas.microsoft.com/identity/claims/objectidentifier", "oid", "appid"), keyIdentity))
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
