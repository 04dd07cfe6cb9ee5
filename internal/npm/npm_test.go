package npm

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// The actions of the test binary when it runs as npm, by its name.
const (
	behaviour = "ROUNDHOUSE_TEST_NPM"
	installs  = "installs"
	fails     = "fails"
	hangs     = "hangs"
	// listener is the address that a hanging npm connects to.
	listener = "ROUNDHOUSE_TEST_NPM_LISTENER"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "npm" {
		os.Exit(fake())
	}
	goleak.VerifyTestMain(m)
}

// fake is an npm that writes half of an installation, and then acts as configured.
func fake() int {
	if err := os.WriteFile("half", nil, 0o600); err != nil {
		return 1
	}
	switch os.Getenv(behaviour) {
	case installs:
		if strings.Join(os.Args[1:3], " ") != "ci --ignore-scripts" {
			return 2
		}
		if err := os.Mkdir("node_modules", 0o700); err != nil {
			return 1
		}
		return 0
	case hangs:
		// The connection shows the test that npm runs, and keeps it running until a signal ends it or the test has ended.
		conn, err := net.Dial("tcp", os.Getenv(listener))
		if err != nil {
			return 1
		}
		_, _ = conn.Read(make([]byte, 1))
		return 1
	default:
		_, _ = os.Stderr.WriteString("no such package")
		return 1
	}
}

// as makes the fake the only npm.
func as(t *testing.T, what string) {
	t.Helper()
	testenv.Long(t)
	bin := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "npm")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	t.Setenv(behaviour, what)
}

func set() Set {
	return Set{Name: "tool", Files: fstest.MapFS{manifest: {Data: []byte("{}")}, lockFile: {Data: []byte(`{"lockfileVersion": 3}`)}}}
}

// counter counts the announced installations.
type counter struct {
	slog.Handler
	mu sync.Mutex
	n  int
}

func (c *counter) Enabled(context.Context, slog.Level) bool { return true }

func (c *counter) Handle(context.Context, slog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return nil
}

// Of concurrent processes one installs, and all get the same folder.
func TestInstall(t *testing.T) {
	as(t, installs)
	cache, said := filepath.Join(t.TempDir(), "cache"), &counter{}
	s := set()
	s.Finish = func(dir string) error { return os.Mkdir(filepath.Join(dir, "finished"), 0o700) }
	var all sync.WaitGroup
	dirs := make([]string, 8)
	for i := range dirs {
		all.Go(func() {
			var err error
			if dirs[i], err = s.installUnder(t.Context(), cache, slog.New(said)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, dir := range dirs {
		if dir != dirs[0] {
			t.Errorf("two folders: %s and %s", dir, dirs[0])
		}
	}
	for _, name := range []string{manifest, lockFile, "node_modules", "finished"} {
		if _, err := os.Stat(filepath.Join(dirs[0], name)); err != nil {
			t.Error(err)
		}
	}
	if said.n != 1 {
		t.Errorf("it was installed %d times", said.n)
	}
	t.Setenv("PATH", t.TempDir())
	if dir, err := s.installUnder(t.Context(), cache, slog.New(said)); err != nil || dir != dirs[0] {
		t.Errorf("without npm, what is installed is not found: %s, %v", dir, err)
	}
	s.Files = fstest.MapFS{manifest: {Data: []byte("{}")}, lockFile: {Data: []byte(`{"lockfileVersion": 3, "packages": {}}`)}}
	if _, err := s.installUnder(t.Context(), cache, slog.New(said)); !errors.Is(err, ErrNoNode) {
		t.Errorf("another lock file, without npm: %v, want %v", err, ErrNoNode)
	}
}

// canceled cancels an installation while npm runs, and another call that waits for it.
func canceled(t *testing.T, s Set, cache string) error {
	running, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	t.Setenv(behaviour, hangs)
	t.Setenv(listener, running.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.installUnder(ctx, cache, slog.New(slog.DiscardHandler))
		ended <- err
	}()
	conn, err := running.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	waiting, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.installUnder(waiting, cache, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
		t.Errorf("who waited: %v", err)
	}
	cancel()
	return <-ended
}

// An interrupted installation is discarded, and leaves nothing permanent.
func TestInterrupted(t *testing.T) {
	as(t, installs)
	path := os.Getenv("PATH")
	for name, test := range map[string]func(*testing.T, Set, string) error{
		"npm fails": func(t *testing.T, s Set, cache string) error {
			t.Setenv(behaviour, fails)
			_, err := s.installUnder(t.Context(), cache, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), "no such package") {
				t.Errorf("error %v does not say what npm said", err)
			}
			return err
		},
		"the last step fails": func(t *testing.T, s Set, cache string) error {
			s.Finish = func(string) error { return fs.ErrPermission }
			_, err := s.installUnder(t.Context(), cache, slog.New(slog.DiscardHandler))
			return err
		},
		"canceled": canceled,
		"the process was killed": func(t *testing.T, s Set, cache string) error {
			dir, err := s.installUnder(t.Context(), cache, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			// A killed process leaves this: all files, under the name of an incomplete folder.
			if err := os.Rename(dir, dir+".partial-1"); err != nil {
				t.Fatal(err)
			}
			return errors.New("killed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", path)
			cache := t.TempDir()
			if err := test(t, set(), cache); err == nil {
				t.Fatal("it succeeded")
			}
			t.Setenv(behaviour, installs)
			dir, err := set().installUnder(t.Context(), cache, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
				t.Error(err)
			}
			if left, err := filepath.Glob(filepath.Join(cache, "*.partial-*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
