package testenv

import (
	"archive/zip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Unpack unpacks the package of an app like a platform: every file gets the mode of its entry.
func Unpack(t testing.TB, file, root string) {
	t.Helper()
	packed, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	for _, entry := range packed.File {
		path := filepath.Join(root, filepath.FromSlash(entry.Name))
		in, openErr := entry.Open()
		if err := errors.Join(openErr, os.MkdirAll(filepath.Dir(path), 0o755)); err != nil {
			t.Fatal(err)
		}
		text, readErr := io.ReadAll(in)
		if err := errors.Join(readErr, in.Close(), os.WriteFile(path, text, entry.Mode().Perm())); err != nil {
			t.Fatal(err)
		}
	}
}
