package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

var (
	nameSyntax    = regexp.MustCompile(`^[0-9a-zA-Z-]{1,127}$`)
	versionSyntax = regexp.MustCompile(`^[0-9a-f]{32}$`)
	plainKind     = regexp.MustCompile(`^[0-9a-z]+$`)
	plainID       = regexp.MustCompile(`^[0-9a-z-]+$`)
	hashSuffix    = regexp.MustCompile(`-[0-9a-f]{32}$`)
)

// hashDigits is the number of hex digits of a name's hash: 128 bits, because ids come from outside and a shorter hash
// could be made to collide on purpose.
const hashDigits = 32

// Name returns the name of the secret of one kind ("hmac", lower-case letters and digits) for any id. The name is
// {kind}-{id} where Key Vault accepts it; otherwise its legal characters and a hash. Different ids (and kinds) never
// share a name, not even when Key Vault, which ignores case, compares them.
func Name(kind, id string) string {
	readable := kind + "-" + id
	// An id that looks like a hashed name is hashed itself, so that the two differ.
	if plainKind.MatchString(kind) && plainID.MatchString(id) && len(readable) <= MaxName && !hashSuffix.MatchString(readable) {
		return readable
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(kind), kind, id))
	legal := strings.Map(legalRune, strings.ToLower(readable))
	if limit := MaxName - 1 - hashDigits; len(legal) > limit {
		legal = legal[:limit]
	}
	return legal + "-" + hex.EncodeToString(sum[:])[:hashDigits]
}

// ValidName reports whether Key Vault accepts name: 1 to 127 letters, digits and dashes.
func ValidName(name string) bool { return nameSyntax.MatchString(name) }

// ValidVersion reports whether version has Key Vault's form: 32 lower-case hex digits.
func ValidVersion(version string) bool { return versionSyntax.MatchString(version) }

// legalRune maps characters that a name cannot hold to a dash.
func legalRune(r rune) rune {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
		return r
	}
	return '-'
}
