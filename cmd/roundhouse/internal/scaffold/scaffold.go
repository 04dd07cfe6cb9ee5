// Package scaffold creates modules for new engines, for roundhouse new. It owns no storage keys.
package scaffold

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"text/template"
)

// Roundhouse is the module that the new one requires.
const Roundhouse = "github.com/vibedata/roundhouse"

// DefaultEngine is the name of the first engine unless Options has one.
const DefaultEngine = "sample"

// Options describe the module to create.
type Options struct {
	// Dir is the folder to create; it is missing or empty.
	Dir string
	// Module is the path of the module; the name of the folder unless set.
	Module string
	// Engine is the name of the first engine: a Go package name; DefaultEngine unless set.
	Engine string
	// Replace is a folder with Roundhouse that replaces a released version; "" for none.
	Replace string
}

// ErrTaken: the folder is not empty.
var ErrTaken = errors.New("the folder is not empty: give another one")

// engineName matches valid names of a Go package and a queue.
var engineName = regexp.MustCompile(`^[a-z][a-z0-9]{0,39}$`)

// modulePath matches the module paths that a template accepts.
var modulePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~/-]*$`)

// files are the templates. Their names end in .tmpl, so that the go command does not treat them as Go files.
//
//go:embed all:files
var files embed.FS

// New creates a module and returns the names of its files. After a failure, the folder is unchanged.
func New(ctx context.Context, o Options) ([]string, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(o.Dir)
	switch {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("%s: %w", o.Dir, ErrTaken)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	existed := err == nil
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	made, err := o.write()
	if err == nil {
		err = o.tidy(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, clear(o.Dir, existed))
	}
	return append(made, "go.mod", "go.sum"), nil
}

// complete checks the options and sets defaults.
func (o *Options) complete() error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	if o.Module == "" {
		o.Module = filepath.Base(dir)
	}
	if o.Engine == "" {
		o.Engine = DefaultEngine
	}
	var errs []error
	if !modulePath.MatchString(o.Module) {
		errs = append(errs, fmt.Errorf("module %q: give a module path, such as example.com/acme/billing", o.Module))
	}
	if !engineName.MatchString(o.Engine) || o.Engine == "main" || o.Engine == "engine" || o.Engine == "handler" {
		errs = append(errs, fmt.Errorf("engine %q: give lower-case letters and digits, beginning with a letter; it becomes a Go package beside engine and handler", o.Engine))
	}
	if o.Replace == "" && version() == unreleased {
		errs = append(errs, errors.New("this roundhouse is not of a release that a module could require: give --replace and the folder of its repository"))
	}
	if o.Replace != "" {
		if o.Replace, err = filepath.Abs(o.Replace); err != nil {
			return err
		}
		if text, err := os.ReadFile(filepath.Join(o.Replace, "go.mod")); err != nil || !bytes.Contains(text, []byte("module "+Roundhouse+"\n")) {
			errs = append(errs, fmt.Errorf("--replace %s: that is not a folder with Roundhouse", o.Replace))
		}
	}
	return errors.Join(errs...)
}

// write fills the templates.
func (o Options) write() ([]string, error) {
	var made []string
	err := fs.WalkDir(files, "files", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "files/"), ".tmpl")
		name = strings.ReplaceAll(name, DefaultEngine, o.Engine)
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		filled, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := filled.Execute(&out, o); err != nil {
			return err
		}
		target := filepath.Join(o.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		made = append(made, name)
		return os.WriteFile(target, out.Bytes(), 0o644)
	})
	slices.Sort(made)
	return made, err
}

// tidy writes go.mod and go.sum, with the command roundhouse as a tool of the module, for the version of this program
// or the folder that replaces it.
func (o Options) tidy(ctx context.Context) error {
	edits := [][]string{{"mod", "init", o.Module}, {"mod", "edit", "-require=" + Roundhouse + "@" + version(), "-tool=" + Roundhouse + "/cmd/roundhouse"}}
	if o.Replace != "" {
		edits = append(edits, []string{"mod", "edit", "-replace=" + Roundhouse + "=" + o.Replace})
		// The checksums of Roundhouse's dependencies are in it: no download is needed.
		if sums, err := os.ReadFile(filepath.Join(o.Replace, "go.sum")); err == nil {
			if err := os.WriteFile(filepath.Join(o.Dir, "go.sum"), sums, 0o644); err != nil {
				return err
			}
		}
	}
	for _, args := range append(edits, []string{"mod", "tidy"}) {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = o.Dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(out))
			if o.Replace == "" {
				err = fmt.Errorf("%w\nif the version %s of this roundhouse was never published, give --replace and the folder of its repository", err, version())
			}
			return err
		}
	}
	return nil
}

// unreleased is the version of a program that was not built from a release. No such version exists.
const unreleased = "v0.0.0"

// version returns the version of Roundhouse in this program, or unreleased, which needs Options.Replace.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != Roundhouse || !strings.HasPrefix(info.Main.Version, "v") || strings.Contains(info.Main.Version, "+dirty") {
		return unreleased
	}
	return info.Main.Version
}

// clear removes the written files from a folder that was empty or missing.
func clear(dir string, existed bool) error {
	if !existed {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}
