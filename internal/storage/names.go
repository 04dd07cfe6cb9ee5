package storage

import (
	"fmt"
	"strings"
)

// CheckName checks the name of a queue or container (what is "queue" or "container") by the rules that both services
// share: 3 to 63 lower-case ASCII letters, digits and single hyphens between them. The error is an ErrInvalid.
func CheckName(what, name string) error {
	ok := len(name) >= 3 && len(name) <= 63 && !strings.Contains(name, "--") && name[0] != '-' && name[len(name)-1] != '-'
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-'
	}
	if !ok {
		return fmt.Errorf("%w: %s name %.64q: use 3 to 63 of a-z, 0-9 and single hyphens between them", ErrInvalid, what, name)
	}
	return nil
}
