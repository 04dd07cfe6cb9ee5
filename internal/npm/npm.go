// Package npm installs npm packages that a lock file pins into the user's cache folder, once for all modules and
// versions of the same lock file. Packages azurite and postgres build on it.
//
// A returned folder is complete and matches the integrity hashes of the lock file. Concurrent processes wait for one
// another, and an interrupted installation is discarded. No package's own script runs. The package owns no storage
// keys; in the file system it owns the folder roundhouse in the user's cache folder (os.UserCacheDir), which holds
// nothing else and can be deleted whenever no program uses it.
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

// ErrNoNode means that Node.js or npm is not on the PATH.
var ErrNoNode = errors.New("not found: install Node.js 18 or later, which brings npm, and put both on the PATH")

const (
	manifest = "package.json"
	lockFile = "package-lock.json"
	// killGrace is how long npm may continue after the end of the context before its output is abandoned.
	killGrace = 5 * time.Second
)

// Set is a package.json with its lock file, and a name for both.
type Set struct {
	// Name is for messages, and the beginning of the folder's name: "azurite".
	Name string
	// Files holds package.json and package-lock.json, usually embedded in the program.
	Files fs.FS
	// Finish completes the folder after npm; nil does nothing. An error discards the installation.
	Finish func(dir string) error
}

// Install returns the folder that holds node_modules. It installs the packages on first use on this machine, and logs
// that: to log, or to slog.Default when that is nil. It then needs npm; without npm it returns ErrNoNode.
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
	defer held.Close() // nil on systems without locks
	if complete(dir) {
		return dir, nil
	}
	log.Info("installing from npm, once on this machine", "packages", s.Name, "folder", dir)
	return dir, s.install(ctx, dir, held)
}

// complete reports whether the folder exists: it gets its name when it is complete.
func complete(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// install builds the folder under another name. It first removes the remains of an interrupted installation.
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

// clean runs "npm ci" without the packages' own scripts. npm inherits the lock: when this process dies, no other
// process starts before npm has ended, too.
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
