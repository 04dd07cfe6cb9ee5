package module_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/module"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// The program is next to go.mod, in cmd/handler, or in the package of --main. Otherwise the error lists the possible
// packages.
func TestWithMain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files      []string
		main, want string
		err        string
	}{
		"next to go.mod":       {files: []string{"main.go", "cmd/handler/main.go"}, want: ""},
		"named as a dot":       {files: []string{"main.go"}, main: ".", want: "."},
		"in cmd/handler":       {files: []string{"x_test.go", "cmd/handler/main.go", "cmd/other/main.go"}, main: ".", want: "./cmd/handler"},
		"flag not set":         {files: []string{"cmd/handler/main.go"}, want: "./cmd/handler"},
		"named":                {files: []string{"cmd/handler/main.go", "cmd/other/main.go"}, main: "./cmd/other", want: "./cmd/other"},
		"named and missing":    {main: "./nothing", want: "./nothing"}, // the build reports it
		"others":               {files: []string{"cmd/b/main.go", "cmd/a/main.go", "cmd/handler/x_test.go", "cmd/README"}, main: ".", want: ".", err: "--main ./cmd/a or --main ./cmd/b"},
		"none":                 {files: []string{"lib/x.go"}, main: ".", want: ".", err: "--main ./PACKAGE"},
		"a folder with a glob": {files: []string{"[x]/cmd/handler/main.go"}, main: ".", want: ".", err: "--main ./PACKAGE"},
	} {
		dir := filepath.Join(t.TempDir(), "a [dir]")
		for _, file := range append(tt.files, "go.mod") {
			path := filepath.Join(dir, filepath.FromSlash(file))
			testenv.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
			testenv.OK(t, os.WriteFile(path, nil, 0o600))
		}
		m, err := module.Module{Dir: dir}.WithMain(tt.main)
		if m.Main != tt.want {
			t.Errorf("%s: %q, want %q", name, m.Main, tt.want)
		}
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		}
	}
}
