package azurite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
)

// installed is the file under node_modules that holds the hash of the lock file it was installed from.
const installed = "node_modules/.roundhouse-lock"

// ErrNoNode: Node.js or npm is not on the PATH.
var ErrNoNode = errors.New("not found: install Node.js 18 or later, which brings npm, and put both on the PATH")

// scriptsDir finds the folder of package.json.
func scriptsDir(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return filepath.Join(at, "scripts"), nil
		}
		parent := filepath.Dir(at)
		if parent == at {
			return "", errors.New("no go.mod above the working directory: run it inside the repository, or name the folder of package.json")
		}
		at = parent
	}
}

// install makes node_modules what the lock file says, and gives the path of node. Processes that come at the same time
// wait for one another.
func install(ctx context.Context, dir string, log *slog.Logger) (node string, err error) {
	node, err = exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("node: %w", ErrNoNode)
	}
	lockFile := filepath.Join(dir, "package-lock.json")
	f, err := os.Open(lockFile)
	if err != nil {
		return "", fmt.Errorf("read the lock file: %w", err)
	}
	defer f.Close()
	if upToDate(dir) {
		return node, nil
	}
	unlock, err := lock(f)
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", lockFile, err)
	}
	defer unlock()
	if upToDate(dir) {
		return node, nil
	}
	log.Info("installing Azurite with npm", "folder", dir)
	return node, npm(ctx, dir)
}

// npm runs "npm ci" without the packages' own scripts, and notes what it installed.
func npm(ctx context.Context, dir string) error {
	path, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("npm: %w", ErrNoNode)
	}
	cmd := exec.CommandContext(ctx, path, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	cmd.WaitDelay = closeGrace
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci in %s: %w: %s", dir, err, tail(output))
	}
	hash, err := lockHash(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.FromSlash(installed)), []byte(hash), 0o600)
}

func upToDate(dir string) bool {
	want, err := lockHash(dir)
	if err != nil {
		return false
	}
	have, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(installed)))
	return err == nil && string(have) == want
}

func lockHash(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func tail(output []byte) []byte {
	const most = 2000
	return output[max(0, len(output)-most):]
}
