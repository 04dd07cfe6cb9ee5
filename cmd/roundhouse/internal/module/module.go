// Package module works on Go modules whose main package is an app of Roundhouse (package handler): it asks a program
// for its manifest, and stages an app for the Functions host.
//
// A folder is replaced as a whole, and only on success, also when several processes stage into it at the same time.
// The package owns no storage keys.
package module

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/internal/jsonc"
)

// Module is a module with an app.
type Module struct {
	// Dir is the folder with go.mod.
	Dir string
	// Main is the package of the app, as the go command takes it; "." unless set.
	Main string
}

// ErrNoModule: no module was found.
var ErrNoModule = errors.New("there is no module here: go.mod and host.json are in no folder from this one up (roundhouse new makes one)")

// Find finds the module of a folder: the folder itself, or one above it.
func Find(dir string) (Module, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return Module{}, err
	}
	for {
		if isFile(filepath.Join(at, "go.mod")) && isFile(filepath.Join(at, "host.json")) {
			return Module{Dir: at}, nil
		}
		parent := filepath.Dir(at)
		if parent == at {
			return Module{}, ErrNoModule
		}
		at = parent
	}
}

// WithMain returns the module with the program in the package main. For "" or ".", that is the package next to
// go.mod or, without one there, cmd/handler. The error lists the packages that --main can name.
func (m Module) WithMain(main string) (Module, error) {
	m.Main = main
	if main != "" && main != "." || hasGo(m.Dir) {
		return m, nil
	}
	if hasGo(filepath.Join(m.Dir, "cmd", "handler")) {
		m.Main = "./cmd/handler"
		return m, nil
	}
	var names []string
	found, _ := os.ReadDir(filepath.Join(m.Dir, "cmd")) // without it, the error has no names
	for _, dir := range found {
		if hasGo(filepath.Join(m.Dir, "cmd", dir.Name())) {
			names = append(names, "--main ./cmd/"+dir.Name())
		}
	}
	if len(names) == 0 {
		names = []string{"--main ./PACKAGE"}
	}
	return m, fmt.Errorf("find the program: neither %s nor its cmd/handler has Go files; name the package of the program: %s", m.Dir, strings.Join(names, " or "))
}

// hasGo reports whether a folder has Go files other than tests.
func hasGo(dir string) bool {
	files, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(files, func(f fs.DirEntry) bool {
		return strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") && f.Type().IsRegular()
	})
}

// home is where host.json and local.settings.json are: beside the program, if it has its own, or else beside go.mod.
func (m Module) home() string {
	if beside := filepath.Join(m.Dir, filepath.FromSlash(m.Main)); isFile(filepath.Join(beside, "host.json")) {
		return beside
	}
	return m.Dir
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Manifest describes the parts of an app, as its program prints it (handler.Manifest).
type Manifest struct {
	Engines   []engine.Description         `json:"engines"`
	Functions map[string]function.Function `json:"functions"`
	Settings  []string                     `json:"settings"`
}

// Manifest builds the app for this machine and asks it for its manifest, with the settings of the environment and of
// local.settings.json.
func (m Module) Manifest(ctx context.Context) (manifest Manifest, err error) {
	err = m.withProgram(ctx, func(program string) error {
		manifest, err = m.ask(ctx, program)
		return err
	})
	return manifest, err
}

// withProgram builds the app for this machine, for the duration of do.
func (m Module) withProgram(ctx context.Context, do func(program string) error) error {
	dir, err := os.MkdirTemp("", "roundhouse-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "handler")
	if err := m.build(ctx, program, Here.OS, Here.Arch); err != nil {
		return err
	}
	return do(program)
}

// build compiles the app into one static program.
func (m Module) build(ctx context.Context, program, goos, goarch string) error {
	main := m.Main
	if main == "" {
		main = "."
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, main)
	cmd.Dir = m.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the handler does not build: go build %s in %s: %w\n%s", main, m.Dir, err, bytes.TrimSpace(out))
	}
	return nil
}

// ask runs the program's command manifest.
func (m Module) ask(ctx context.Context, program string) (Manifest, error) {
	env, err := m.Environment()
	if err != nil {
		return Manifest{}, err
	}
	var manifest Manifest
	if err := Describe(ctx, program, m.home(), env, &manifest); err != nil {
		return Manifest{}, err
	}
	for name, f := range manifest.Functions {
		f.Name = name
		manifest.Functions[name] = f
	}
	return manifest, nil
}

// Describe asks a program for its manifest, in an environment and with the host.json of a folder.
func Describe(ctx context.Context, program, home string, env []string, into any) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "manifest")
	cmd.Dir, cmd.Env = home, append(slices.Clone(env), "FUNCTIONS_APP_ROOT_PATH="+home)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the app does not say what it consists of (%s manifest): %w\n%s", program, err, strings.TrimSpace(stderr.String()))
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the manifest of the app: %w; does its main function call handler.Main?", err)
	}
	return nil
}

// WithProgram calls do with a program of the module and the folder of its host.json: the program staged at a path, or
// for "" one that is built for this machine and the duration of do.
func (m Module) WithProgram(ctx context.Context, staged string, do func(program, home string) error) error {
	if staged != "" {
		return do(staged, filepath.Dir(staged))
	}
	return m.withProgram(ctx, func(program string) error { return do(program, m.home()) })
}

// Environment returns the environment of this process, with missing variables from local.settings.json, as the local
// tools of the Functions host combine them.
func (m Module) Environment() ([]string, error) {
	file := filepath.Join(m.home(), "local.settings.json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Environ(), nil
	}
	var local struct{ Values jsonc.Values }
	if err == nil {
		err = jsonc.Unmarshal(text, &local)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: it has to be JSON whose Values are texts: %w", file, err)
	}
	env := os.Environ()
	for name, value := range local.Values {
		if _, set := os.LookupEnv(name); !set {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}

// Call is a command of a program.
type Call struct {
	// Program is the path of a staged one; "" for that of the module, which is built for the call.
	Program string
	Args    []string
	// Env is added to the environment, as NAME=value, and overrides it.
	Env            []string
	Stdout, Stderr io.Writer
}

// Run runs a command of the app, in the folder of its host.json.
func (m Module) Run(ctx context.Context, c Call) error {
	env := os.Environ()
	if m.Dir != "" {
		var err error
		if env, err = m.Environment(); err != nil {
			return err
		}
	}
	return m.WithProgram(ctx, c.Program, func(program, home string) error {
		program, err := filepath.Abs(program)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, program, c.Args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = home, c.Stdout, c.Stderr
		cmd.Env = append(slices.Concat(env, c.Env), "FUNCTIONS_APP_ROOT_PATH="+home)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %s: %w", filepath.Base(program), c.Args[0], err)
		}
		return nil
	})
}
