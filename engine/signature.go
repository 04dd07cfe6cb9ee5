package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// ErrorSignature returns a short hash that is equal for errors with the same cause. It ignores details that vary
// between failures: quoted text, GUIDs, numbers of any kind, letter case and spacing. It has 16 hexadecimal digits.
func ErrorSignature(message string) string {
	sum := sha256.Sum256([]byte(normalised(message)))
	return hex.EncodeToString(sum[:8])
}

// variable matches the parts that differ between errors of one cause. An apostrophe quotes only if no word runs into
// it: "can't" quotes nothing. A number is any run of hexadecimal digits with a decimal one among them.
var variable = regexp.MustCompile(strings.Join([]string{
	`"[^"]*"`,
	"`[^`]*`",
	`\B'[^']*'`,
	`\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b`,
	`\b0x[0-9a-f]+\b`,
	`[0-9]+(?:[.,:][0-9]+)+`,
	`\b[0-9a-f]*[0-9][0-9a-f]*\b`,
	`\b[0-9a-f]{8,}\b`,
	`[0-9]+`,
}, "|"))

func normalised(message string) string {
	return strings.Join(strings.Fields(variable.ReplaceAllLiteralString(strings.ToLower(message), "#")), " ")
}
