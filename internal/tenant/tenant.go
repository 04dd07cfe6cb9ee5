// Package tenant has the rule by which stored data belongs to a tenant. Ids of tenants are compared without case. Data
// without a tenant belongs to the platform, and only the platform sees it. It keeps no state.
package tenant

import (
	"strings"
	"unicode"
)

// Sees reports whether a caller sees the data of owner. A caller without a tenant is the platform, which sees
// everything; others see the data of their own tenant.
func Sees(caller, owner string) bool { return caller == "" || strings.EqualFold(caller, owner) }

// Fold returns the same text for all spellings of an id that Sees treats as equal, so that keys can be made of it.
// Fold(a) == Fold(b) exactly when strings.EqualFold(a, b).
func Fold(id string) string {
	return strings.Map(func(r rune) rune {
		for { // the runes that are equal without case form a circle, represented by the smallest
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, id)
}
