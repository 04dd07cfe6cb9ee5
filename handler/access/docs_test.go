package access_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// The table of docs/security.md is what the roles are.
func TestDocumentedRoles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	testenv.Check(t, err)
	columns := []access.Role{access.Participant, access.Reader, access.Operator, access.Administrator, access.Sender}
	documented := map[access.Permission]bool{access.Self: true} // everybody's
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 10 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		p := access.Permission(strings.Trim(cells[1], " `"))
		documented[p] = true
		for i, r := range columns {
			if got := strings.TrimSpace(cells[3+i]) == "yes"; got != slices.Contains(r.Permissions(), p) {
				t.Errorf("%s of %s: documented as %v", p, r, got)
			}
		}
		if got := strings.TrimSpace(cells[8]) == "yes"; got == p.Platform() {
			t.Errorf("%s for tenants: documented as %v", p, got)
		}
	}
	for _, p := range access.Permissions() {
		if !documented[p] {
			t.Errorf("%s is not documented", p)
		}
	}
}
