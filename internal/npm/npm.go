// Package npm installs npm packages that a lock file pins into the user's cache folder, once for all modules and versions
// of the same lock file. Packages azurite and postgres build on it.
//
// It promises that a folder it returns is complete and is what the lock file's integrity hashes say, that processes which
// come at the same time wait for one another, and that an installation which is interrupted anywhere counts for nothing.
// No package's own script runs. It owns no storage keys; of the file system it owns the folder roundhouse in the user's
// cache folder (os.UserCacheDir), where nothing else is kept and which can be deleted at any time that nothing runs.
package npm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/vibedata/roundhouse/internal/filelock"
)

// ErrNoNode: Node.js or npm is not on the PATH.
var ErrNoNode = errors.New("not found: install Node.js 18 or later, which brings npm, and put both on the PATH")

const (
	manifest = "package.json"
	lockFile = "package-lock.json"
	// killGrace is how long npm may go on after the context has ended before its output is given up.
	killGrace = 5 * time.Second
)

// Set is a package.json with its lock file, and a name for both.
type Set struct {
	// Name is what people read, and the beginning of the folder's name: "azurite".
	Name string
	// Files holds package.json and package-lock.json, as a rule embedded in a program.
	Files fs.FS
	// Finish completes the folder after npm; nil does nothing. An error makes the installation void.
	Finish func(dir string) error
}

// Install gives the folder that holds node_modules. It installs the packages when that has not been done on this machine,
// and says so: to log, or to slog.Default when that is nil. It needs npm then, and its absence is an ErrNoNode.
func (s Set) Install(ctx context.Context, log *slog.Logger) (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("install %s: find the user's cache folder: %w", s.Name, err)
	}
	if log == nil {
		log = slog.Default()
	}
	if dir, err = s.installUnder(ctx, filepath.Join(cache, "roundhouse"), log); err != nil {
		return "", fmt.Errorf("install %s: %w", s.Name, err)
	}
	return dir, nil
}

func (s Set) installUnder(ctx context.Context, cache string, log *slog.Logger) (string, error) {
	pinned, err := fs.ReadFile(s.Files, lockFile)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(pinned)
	dir := filepath.Join(cache, s.Name+"-"+hex.EncodeToString(hash[:6]))
	if complete(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	held, err := filelock.Acquire(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("wait for another installation: %w", err)
	}
	defer held.Close() // nil where there are no locks
	if complete(dir) {
		return dir, nil
	}
	log.Info("installing from npm, once on this machine", "packages", s.Name, "folder", dir)
	return dir, s.install(ctx, dir, held)
}

// complete says whether the folder is there: it gets its name when everything is in it.
func complete(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// install builds the folder under another name. What an interrupted installation left behind is removed first.
func (s Set) install(ctx context.Context, dir string, held *os.File) (err error) {
	abandoned, err := filepath.Glob(dir + ".partial-*")
	if err != nil {
		return err
	}
	for _, a := range abandoned {
		if err := os.RemoveAll(a); err != nil {
			return err
		}
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".partial-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	for _, name := range []string{manifest, lockFile} {
		text, err := fs.ReadFile(s.Files, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(partial, name), text, 0o600); err != nil {
			return err
		}
	}
	if err := clean(ctx, partial, held); err != nil {
		return err
	}
	if s.Finish != nil {
		if err := s.Finish(partial); err != nil {
			return err
		}
	}
	return os.Rename(partial, dir)
}

// clean runs "npm ci" without the packages' own scripts. npm inherits the lock: when this process dies, nobody else begins
// before npm has ended, too.
func clean(ctx context.Context, dir string, held *os.File) error {
	program, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("npm: %w", ErrNoNode)
	}
	cmd := exec.CommandContext(ctx, program, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if held != nil {
		cmd.ExtraFiles = []*os.File{held}
	}
	cmd.WaitDelay = killGrace
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci in %s: %w: %s", dir, errors.Join(err, ctx.Err()), tail(output))
	}
	return nil
}

func tail(output []byte) []byte {
	const most = 2000
	return output[max(0, len(output)-most):]
}
