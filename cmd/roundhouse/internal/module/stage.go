package module

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vibedata/roundhouse/internal/jsonc"
)

// Target is the machine for which an app is staged.
type Target struct {
	OS, Arch string
	// Settings includes local.settings.json. A deployment has none: they are those of a developer's machine, and may
	// have secrets.
	Settings bool
	// Zip is a file that also gets the staged app, as one package (Package); "" for none.
	Zip string
}

// Deployment is the platform of Function Apps, and Here this machine.
var (
	Deployment = Target{OS: "linux", Arch: "amd64"}
	Here       = Target{OS: runtime.GOOS, Arch: runtime.GOARCH, Settings: true}
)

// hostFile holds the fields of host.json for staging.
type hostFile struct {
	CustomHandler struct {
		Description struct{ DefaultExecutablePath string }
	}
}

// Stage creates in dir the files that the Functions host runs: host.json, the static program, and every function of
// the app as a direct child. For this machine it adds local.settings.json. It replaces dir as a whole; dir must be
// missing, empty, or an earlier staging.
func (m Module) Stage(ctx context.Context, dir string, target Target) (Manifest, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Manifest{}, err
	}
	executable, err := m.executable()
	if err != nil {
		return Manifest{}, err
	}
	if err := replaceable(dir, executable); err != nil {
		return Manifest{}, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Manifest{}, err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new.")
	if err != nil {
		return Manifest{}, err
	}
	defer os.RemoveAll(fresh)
	manifest, err := m.layOut(ctx, fresh, executable, target)
	if err == nil && target.Zip != "" {
		err = Package(fresh, target.Zip)
	}
	if err == nil {
		err = replace(dir, fresh, executable)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("%w\n%s is as it was", err, dir)
	}
	return manifest, nil
}

// executable returns the program's name in host.json.
func (m Module) executable() (string, error) {
	path := filepath.Join(m.home(), "host.json")
	text, err := os.ReadFile(path)
	var host hostFile
	if err == nil {
		err = jsonc.Unmarshal(text, &host)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	name := host.CustomHandler.Description.DefaultExecutablePath
	if name == "" || name != filepath.Base(name) {
		return "", fmt.Errorf("%s: customHandler.description.defaultExecutablePath is %q: name a file of the folder itself, such as handler", path, name)
	}
	return name, nil
}

// layOut fills a new folder.
func (m Module) layOut(ctx context.Context, dir, executable string, target Target) (Manifest, error) {
	if err := os.Chmod(dir, 0o755); err != nil { // a temporary folder is private by default
		return Manifest{}, err
	}
	program := filepath.Join(dir, executable)
	if err := m.build(ctx, program, target.OS, target.Arch); err != nil {
		return Manifest{}, err
	}
	ask := m.Manifest
	if target.OS == Here.OS && target.Arch == Here.Arch {
		ask = func(ctx context.Context) (Manifest, error) { return m.ask(ctx, program) }
	}
	manifest, err := ask(ctx)
	if err != nil {
		return Manifest{}, err
	}
	copies := map[string]bool{"host.json": true, ".funcignore": false}
	if target.Settings {
		copies["local.settings.json"] = false
	}
	for name, needed := range copies {
		text, err := os.ReadFile(filepath.Join(m.home(), name))
		if errors.Is(err, fs.ErrNotExist) && !needed {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return Manifest{}, err
		}
	}
	for _, f := range manifest.Functions {
		if err := f.Write(dir); err != nil {
			return Manifest{}, err
		}
	}
	return manifest, nil
}

// replaceable reports whether a folder may be replaced: its content is deleted. Another process may replace the
// folder during the check, so a foreign folder counts only if it is the same one afterwards.
func replaceable(dir, executable string) error {
	for {
		before, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case staged(dir, executable):
			return nil
		}
		if after, err := os.Stat(dir); err == nil && os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()) {
			return notOurs(dir)
		}
	}
}

func notOurs(dir string) error {
	return fmt.Errorf("%s is neither empty nor an earlier staging: give another folder", dir)
}

// staged reports whether a folder is empty or an earlier staging.
func staged(dir, executable string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && (len(entries) == 0 ||
		isFile(filepath.Join(dir, "host.json")) && isFile(filepath.Join(dir, executable)) && !isFile(filepath.Join(dir, "go.mod")))
}

// replace replaces dir by fresh. The old folder is moved away as a whole, so that no process sees a part of it. It is
// checked only then, because no other process changes it there: a folder that was never staged is moved back. A
// concurrent staging of another process is equally valid.
func replace(dir, fresh, executable string) error {
	const tries = 1000
	var err error
	for range tries {
		if err = os.Rename(fresh, dir); err == nil {
			return nil
		}
		if err := moveAway(dir, executable); err != nil {
			return err
		}
	}
	return fmt.Errorf("replace %s: others replace it all the time: %w", dir, err)
}

// moveAway removes an earlier staging. A missing one is no error.
func moveAway(dir, executable string) error {
	away, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".old.")
	if err != nil {
		return err
	}
	old := filepath.Join(away, "dist")
	err = os.Rename(dir, old)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil && !staged(old, executable):
		return errors.Join(notOurs(dir), os.Rename(old, dir), os.Remove(away))
	}
	return errors.Join(err, os.RemoveAll(away))
}
