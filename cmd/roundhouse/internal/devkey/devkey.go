// Package devkey keeps the key of an app that runs on this machine, and finds that of the one that runs.
//
// It promises that a key is the same at every start, that only the owner of the state folder may read it, and that it is found
// for the address that the running app has announced alone: not for whatever else listens on this machine. It owns no storage
// keys; of the file system it owns the files key and address of the state folder.
package devkey

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/module"
)

// State is the state folder of an app, in its module, unless the app was given another.
const State = ".run"

const (
	keyFile     = "key"
	addressFile = "address"
	// minLength is that of the shortest text that is taken for a key: what rand.Text makes.
	minLength = 26
)

// File is where the key of a state folder is.
func File(state string) string { return filepath.Join(state, keyFile) }

// Keep gives the key of a state folder, which has to exist. The first call makes it.
func Keep(state string) (string, error) {
	path := File(state)
	// Whoever comes second at the same time finds the file, and reads it.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return read(path)
	}
	if err != nil {
		return "", fmt.Errorf("make the key: %w", err)
	}
	key := rand.Text()
	_, err = file.WriteString(key + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("make the key: %w", err), os.Remove(path))
	}
	return key, nil
}

// read reads a key that was made before. Others shall not read it, whoever wrote the file.
func read(path string) (string, error) {
	if err := os.Chmod(path, 0o600); err != nil {
		return "", fmt.Errorf("keep the key from others: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if len(key) < minLength || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s holds no key: delete it, and another is made", path)
	}
	return key, nil
}

// Announce says in the state folder at which address the app runs that takes its key. The app withdraws that when it ends.
func Announce(state, address string) (withdraw func() error, err error) {
	path := filepath.Join(state, addressFile)
	if err := os.WriteFile(path, []byte(address+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("announce the address: %w", err)
	}
	return func() error { return os.Remove(path) }, nil
}

// Find gives the key of the app that runs out of the module of a folder, if that is the app at an address; "" otherwise.
func Find(dir string, address *url.URL) string {
	m, err := module.Find(dir)
	if err != nil {
		return ""
	}
	state := filepath.Join(m.Dir, State)
	text, err := os.ReadFile(filepath.Join(state, addressFile))
	if err != nil {
		return ""
	}
	announced, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil || announced.Scheme != address.Scheme || announced.Port() != address.Port() || !local(announced) || !local(address) {
		return ""
	}
	key, err := read(File(state))
	if err != nil {
		return "" // the app will say that a key is missing
	}
	return key
}

// local says whether an address is one of the local host's, which listens on 127.0.0.1.
func local(u *url.URL) bool { return u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost" }
