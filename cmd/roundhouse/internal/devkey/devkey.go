// Package devkey stores the key of an app that runs on this machine, and finds that of the running one.
//
// A key is the same at every start, only the owner of the state folder may read it, and it is found only for the
// address that the running app has announced, not for any other listener on this machine. The package owns no storage
// keys; in the file system it owns the files key and address of the state folder.
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

// State is the default state folder of an app, in its module.
const State = ".run"

const (
	keyFile     = "key"
	addressFile = "address"
	// minLength is the length of the shortest accepted key: that of rand.Text.
	minLength = 26
)

// File returns the path of the key in a state folder.
func File(state string) string { return filepath.Join(state, keyFile) }

// Keep returns the key of a state folder, which must exist. The first call creates it.
func Keep(state string) (string, error) {
	path := File(state)
	// A concurrent second call finds the file, and reads it.
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

// read reads an existing key. It restricts the file to its owner, whoever wrote it.
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

// Announce records in the state folder the address of the app that uses its key. The app withdraws it when it ends.
func Announce(state, address string) (withdraw func() error, err error) {
	path := filepath.Join(state, addressFile)
	if err := os.WriteFile(path, []byte(address+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("announce the address: %w", err)
	}
	return func() error { return os.Remove(path) }, nil
}

// Find returns the key of the app that runs from the module of a folder, if the app has announced the address; ""
// otherwise.
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
		return "" // the app will report a missing key
	}
	return key
}

// local reports whether an address belongs to the local host, which listens on 127.0.0.1.
func local(u *url.URL) bool { return u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost" }
