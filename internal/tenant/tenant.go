// Package tenant is the rule by which everything that is stored belongs to a tenant: ids of tenants are compared
// without case, what has no tenant belongs to the platform, and only the platform sees that. It keeps nothing.
package tenant

import (
	"strings"
	"unicode"
)

// Sees reports whether a caller sees what belongs to owner. A caller without a tenant is the platform, which sees
// everything; others see what belongs to their own tenant.
func Sees(caller, owner string) bool { return caller == "" || strings.EqualFold(caller, owner) }

// Fold returns the same text for all spellings of an id that Sees does not tell apart, so that keys can be made of it:
// Fold(a) == Fold(b) exactly when strings.EqualFold(a, b).
func Fold(id string) string {
	return strings.Map(func(r rune) rune {
		for { // the runes that are equal without case form a circle, of which the smallest stands for all
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, id)
}
