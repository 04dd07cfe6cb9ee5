package module_test

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/module"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// A package has the modes that the platform needs, regardless of the folder's modes except for the owner's execute
// permission, and the same bytes at any time.
func TestPackage(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	write := func(name string, mode fs.FileMode, when time.Time) {
		path := filepath.Join(dir, name)
		testenv.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testenv.OK(t, os.WriteFile(path, []byte(strings.Repeat(name, 100)), 0o600))
		testenv.OK(t, os.Chmod(path, mode))
		testenv.OK(t, os.Chtimes(path, when, when))
	}
	pack := func(name string) []byte {
		file := filepath.Join(out, name)
		testenv.OK(t, module.Package(dir, file))
		text := testenv.Must(os.ReadFile(file))(t)
		return text
	}
	write("host.json", 0o600, time.Unix(1e9, 0))
	write("handler", 0o700, time.Unix(1e9, 0))
	write("z-function/function.json", 0o644, time.Unix(1e9, 0))
	write("a-function/function.json", 0o644, time.Unix(1e9, 0))
	first := pack("first.zip")
	write("handler", 0o755, time.Unix(2e9, 0))
	write("host.json", 0o644, time.Unix(2e9, 0))
	if !bytes.Equal(first, pack("second.zip")) {
		t.Error("the same files make other bytes at another time")
	}
	if !bytes.Equal(first, pack("first.zip")) {
		t.Error("a package that is replaced has other bytes")
	}
	read := testenv.Must(zip.NewReader(bytes.NewReader(first), int64(len(first))))(t)
	type entry struct {
		Name string
		Mode fs.FileMode
	}
	var got []entry
	for _, f := range read.File {
		got = append(got, entry{f.Name, f.Mode()})
	}
	want := []entry{{"a-function/function.json", 0o644}, {"handler", 0o755}, {"host.json", 0o644}, {"z-function/function.json", 0o644}}
	testenv.Equal(t, "entries", want, got)

	// A folder that cannot be packed leaves the previous package unchanged, without leftovers.
	testenv.OK(t, os.Symlink("handler", filepath.Join(dir, "link")))
	if err := module.Package(dir, filepath.Join(out, "first.zip")); err == nil || !strings.Contains(err.Error(), "link is no regular file") || !strings.Contains(err.Error(), "as it was") {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(out, "first.zip")); err != nil || !bytes.Equal(text, first) {
		t.Errorf("the package of before is gone: %v", err)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) != 2 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}
