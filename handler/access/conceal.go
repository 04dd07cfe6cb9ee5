package access

import (
	"bytes"
	"regexp"
	"strings"
)

// Operators replaces the principals of the home tenant in answers to other tenants.
const Operators = "platform operator"

// memberName matches the name of a JSON member whose text value begins at the end of the match.
var memberName = regexp.MustCompile(`"([A-Za-z]+)":"$`)

// Hides reports whether the caller is of another tenant and the principal of the home tenant.
func (c *Call) Hides(id string) bool {
	return c != nil && c.Principal.Scope != "" && c.HomeTenant() != "" && strings.HasPrefix(strings.ToLower(id), strings.ToLower(c.HomeTenant())+"/")
}

// Conceal hides the principals of the home tenant in a JSON text for a caller of another tenant. It replaces their
// ids and names. A name follows the id, in parentheses or in the member that has the suffix Name.
func (c *Call) Conceal(text []byte) []byte {
	home := ""
	if c != nil && c.Principal.Scope != "" {
		home = c.HomeTenant()
	}
	if home == "" {
		return text
	}
	ids, err := regexp.Compile(`(?i)` + regexp.QuoteMeta(home) + `/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	if err != nil {
		return text // unreachable: the home tenant is quoted
	}
	var out []byte
	for at := ids.FindIndex(text); at != nil; at = ids.FindIndex(text) {
		before, rest := text[:at[0]], text[at[1]:]
		out = append(append(out, before...), Operators...)
		if bytes.HasPrefix(rest, []byte(" (")) {
			rest = rest[parenthesis(rest):]
		}
		if member := memberName.FindSubmatch(before[max(0, len(before)-64):]); member != nil {
			if follows := []byte(`","` + string(member[1]) + `Name":"`); bytes.HasPrefix(rest, follows) {
				out = append(out, follows...)
				rest = rest[len(follows):]
				rest = rest[quote(rest):]
			}
		}
		text = rest
	}
	return append(out, text...)
}

// parenthesis returns the length of a text in parentheses, which ends within its JSON string.
func parenthesis(text []byte) int {
	depth, end := 0, quote(text)
	for n := 0; n < end; n++ {
		switch text[n] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return n + 1
			}
		}
	}
	return end
}

// quote returns the index of the quotation mark that ends a JSON string.
func quote(text []byte) int {
	for n := 0; n < len(text); n++ {
		switch text[n] {
		case '\\':
			n++
		case '"':
			return n
		}
	}
	return len(text)
}
