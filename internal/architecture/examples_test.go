package architecture

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// The smallest programs stay small: each has less than 30 lines of code after its imports.
func TestSmallestExamplesAreSmall(t *testing.T) {
	t.Parallel()
	const most = 29
	for _, name := range []string{"hello", "timer", "event"} {
		path := filepath.Join(root, "examples", name, "main.go")
		text := testenv.Must(os.ReadFile(path))(t)
		files := token.NewFileSet()
		parsed := testenv.Must(parser.ParseFile(files, path, text, parser.SkipObjectResolution))(t)
		imports := files.Position(parsed.Decls[0].End()).Offset
		lines := 0
		for line := range strings.Lines(string(text[imports:])) {
			if code := strings.TrimSpace(line); code != "" && !strings.HasPrefix(code, "//") {
				lines++
			}
		}
		if lines > most || lines == 0 {
			t.Errorf("%s has %d lines of code, at most %d are wanted", path, lines, most)
		}
	}
}
