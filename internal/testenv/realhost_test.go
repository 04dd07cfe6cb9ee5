package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// Not parallel with others: it changes the environment.
func TestRealHost(t *testing.T) {
	there := t.TempDir()
	if err := os.WriteFile(filepath.Join(there, "extensions.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const line = "SKIP: the queue extension of the real Functions host: name its folder in REALHOST_EXTENSIONS"
	for _, test := range []struct{ name, dir, want, report string }{
		{name: "there", dir: there, want: "went on in " + there},
		// Even if missing programs are failures.
		{name: "not named", want: line, report: line + "\n"},
		{name: "another folder", dir: t.TempDir(), want: "failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "skipped")
			t.Setenv(Demand, "all")
			t.Setenv(Skipped, file)
			t.Setenv(RealHostExtensions, test.dir)
			r, ended := &recorder{TB: t}, make(chan struct{})
			go func() {
				defer close(ended)
				r.fate = "went on in " + RealHostQueues(r)
			}()
			<-ended
			if r.fate != test.want {
				t.Errorf("it %s, want %s", r.fate, test.want)
			}
			if text, _ := os.ReadFile(file); string(text) != test.report {
				t.Errorf("report %q, want %q", text, test.report)
			}
		})
	}
}
