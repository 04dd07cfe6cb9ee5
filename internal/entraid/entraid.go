// Package entraid parses ids of Microsoft Entra: of tenants, applications, people and groups. Settings, tokens and
// headers are normalized with it before comparison.
//
// All spellings of an id become the one in tokens; a text that cannot be an id is an error. The package owns no storage
// keys.
package entraid

import (
	"errors"
	"strings"

	"github.com/google/uuid"
)

var errID = errors.New("it is not an id of Microsoft Entra: set a UUID such as 0b1f5a2e-7c55-4c2a-9d0f-3f0f6b1f7a11")

// Parse reads an id: a UUID in any letter case, with hyphens or without, and with braces, parentheses, "urn:uuid:" or
// white space around it. It returns it as in tokens, in lower case with hyphens. The error does not quote the text.
func Parse(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	text = strings.TrimPrefix(text, "urn:uuid:")
	for _, around := range []string{"{}", "()"} {
		if len(text) > 1 && text[0] == around[0] && text[len(text)-1] == around[1] {
			text = strings.TrimSpace(text[1 : len(text)-1])
			break
		}
	}
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 && len(text) != 32 || id == uuid.Nil {
		return "", errID
	}
	return id.String(), nil
}

// Normal returns an id as Parse does, and any other text without the white space around it: for fields that may hold a
// name, too.
func Normal(text string) string {
	if id, err := Parse(text); err == nil {
		return id
	}
	return strings.TrimSpace(text)
}

// Same reports whether two texts are the same id, or the same name without case.
func Same(a, b string) bool { return strings.EqualFold(Normal(a), Normal(b)) }

// Audience returns the normal form of an audience in a token or a setting. The id of an application also represents the
// URI api:// and the id; another URI has scheme and host in lower case and no slash at its end.
func Audience(text string) string {
	if id, err := Application(text); err == nil {
		return id
	}
	text = strings.TrimRight(strings.TrimSpace(text), "/")
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	host, path, _ := strings.Cut(rest, "/")
	return strings.TrimRight(strings.ToLower(scheme+"://"+host)+"/"+path, "/")
}

// Application reads the id of an application from a setting, which may have the URI derived from it, api:// and the id.
func Application(text string) (string, error) {
	text = strings.TrimSpace(text)
	if len(text) > len("api://") && strings.EqualFold(text[:len("api://")], "api://") {
		text = strings.TrimRight(text[len("api://"):], "/")
	}
	return Parse(text)
}
