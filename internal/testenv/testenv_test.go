package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vibedata/roundhouse/internal/daemon"
)

// recorder is a test that records how it ends.
type recorder struct {
	testing.TB
	fate string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(...any) {
	r.fate = "failed"
	runtime.Goexit()
}

func (r *recorder) Fatalf(string, ...any) { r.Fatal() }

func (r *recorder) Skip(args ...any) {
	r.fate = fmt.Sprint(args...)
	runtime.Goexit()
}

// Not parallel with others: it changes the environment.
func TestStarted(t *testing.T) {
	const line = "SKIP: oracle: install the package oracle"
	missing := fmt.Errorf("start oracle: %w", &daemon.MissingError{Tool: "oracle", Get: "install the package oracle", Err: os.ErrNotExist})
	for _, test := range []struct {
		name, demand, want, report string
		err                        error
	}{
		{name: "started", want: "went on"},
		{name: "started where all is demanded", demand: "all", want: "went on"},
		{name: "not there", err: missing, want: line, report: line + "\n"},
		{name: "not there where all is demanded", demand: "all", err: missing, want: "failed"},
		{name: "broken", err: errors.New("out of memory"), want: "failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "skipped")
			t.Setenv(Demand, test.demand)
			t.Setenv(Skipped, file)
			r, ended := &recorder{TB: t}, make(chan struct{})
			go func() {
				defer close(ended)
				Started(r, test.err)
				r.fate = "went on"
			}()
			<-ended
			if r.fate != test.want {
				t.Errorf("it %s, want %s", r.fate, test.want)
			}
			text, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if string(text) != test.report {
				t.Errorf("report %q, want %q", text, test.report)
			}
		})
	}
}
