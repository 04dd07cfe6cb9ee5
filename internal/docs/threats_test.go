package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Each line of the threat model names its tests, and these exist. All kinds of actors have lines.
func TestThreats(t *testing.T) {
	t.Parallel()
	const page = "docs/security.md"
	source := testenv.Must(os.ReadFile(filepath.Join(root, filepath.FromSlash(page))))(t)
	_, chapter, found := strings.Cut(string(source), "\n## Threat model\n")
	if !found {
		t.Fatalf("%s has no chapter Threat model", page)
	}
	actors := map[string]bool{}
	r := repository{dir: root}
	for _, line := range requirementsOf([]byte(chapter)) {
		actors[line.number] = true
		if len(line.tests) == 0 {
			t.Errorf("%s: %s: no test is named", page, line.number)
		}
		for _, name := range line.tests {
			if problem := r.test(name); problem != "" {
				t.Errorf("%s: %s: %s", page, line.number, problem)
			}
		}
	}
	for _, actor := range []string{"anonymous", "a managed application", "a reader of another tenant", "an operator of another tenant", "an administrator of another tenant",
		"a reader of the home tenant", "an operator of the home tenant", "an administrator of the home tenant", "a machine with a function key", "a person with access to storage"} {
		if !actors[actor] {
			t.Errorf("%s: no line about %s", page, actor)
		}
	}
}
