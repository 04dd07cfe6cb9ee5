package devkey_test

import (
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/devkey"
	"github.com/vibedata/roundhouse/internal/testenv"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	testenv.OK(t, os.WriteFile(path, []byte(text), mode))
}

func keep(t *testing.T, state string) string {
	t.Helper()
	key := testenv.Must(devkey.Keep(state))(t)
	return key
}

func TestKeyIsTheSameAtEveryStart(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	first := keep(t, state)
	if second := keep(t, state); len(first) < 26 || second != first {
		t.Errorf("keys %q and %q", first, second)
	}
	if other := keep(t, t.TempDir()); other == first {
		t.Error("two folders have one key")
	}
	// Scripts read the file.
	if text, err := os.ReadFile(devkey.File(state)); err != nil || strings.TrimSpace(string(text)) != first {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestNobodyElseReadsTheKey(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes")
	}
	state := t.TempDir()
	for _, before := range []os.FileMode{0o600, 0o644} {
		keep(t, state)
		if info, err := os.Stat(devkey.File(state)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("after mode %o: %v, %v", before, info.Mode(), err)
		}
		testenv.OK(t, os.Chmod(devkey.File(state), 0o644))
	}
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "short": "abc", "several lines": strings.Repeat("abcdefghij\n", 9), "no ASCII": strings.Repeat("é", 40)} {
		state := t.TempDir()
		write(t, devkey.File(state), text, 0o600)
		if key, err := devkey.Keep(state); err == nil || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%s: key %q, %v", name, key, err)
		}
	}
	if _, err := devkey.Keep(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a folder that is missing has a key")
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module x\n", 0o600)
	write(t, filepath.Join(dir, "host.json"), "{}", 0o600)
	state, below := filepath.Join(dir, devkey.State), filepath.Join(dir, "below")
	for _, folder := range []string{state, below} {
		testenv.OK(t, os.Mkdir(folder, 0o700))
	}
	key := keep(t, state)
	find := func(dir, address string) string {
		u := testenv.Must(url.Parse(address))(t)
		return devkey.Find(dir, u)
	}
	if got := find(dir, "http://127.0.0.1:7071"); got != "" {
		t.Error("there is a key for an app that does not run")
	}
	withdraw := testenv.Must(devkey.Announce(state, "http://127.0.0.1:7071"))(t)
	for _, test := range []struct {
		dir, address string
		want         string
	}{
		{dir, "http://127.0.0.1:7071", key},
		{dir, "http://localhost:7071/api", key},
		{below, "http://127.0.0.1:7071", key},
		{dir, "http://127.0.0.1:7072", ""},
		{dir, "http://127.0.0.1", ""},
		{dir, "https://127.0.0.1:7071", ""},
		{dir, "http://127.0.0.2:7071", ""},
		{dir, "http://app.example:7071", ""},
		{t.TempDir(), "http://127.0.0.1:7071", ""},
	} {
		if got := find(test.dir, test.address); got != test.want {
			t.Errorf("%s in %s: key %q, want %q", test.address, test.dir, got, test.want)
		}
	}
	testenv.OK(t, withdraw())
	if got := find(dir, "http://127.0.0.1:7071"); got != "" {
		t.Error("there is a key for an app that has ended")
	}
}
