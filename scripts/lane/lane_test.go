package main

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	module  = "github.com/vibedata/roundhouse/"
	outbox  = module + "outbox"
	subtest = "TestCrash/after-3"
)

// The output of a lane for events of `go test -json`.
func TestProgress(t *testing.T) {
	t.Parallel()
	long := make([]event, 100)
	for i := range long {
		long[i] = event{Action: "output", Package: outbox, Test: subtest, Output: fmt.Sprintf("line %d\n", i)}
	}
	for name, test := range map[string]struct {
		events []event
		want   []string // lines, in this order, among others
		not    []string
		err    string
	}{
		"a package that passes": {
			events: []event{{Action: "start", Package: outbox}, {Action: "output", Package: outbox, Test: "TestA", Output: "chatter\n"},
				{Action: "pass", Package: outbox, Test: "TestA"}, {Action: "pass", Package: outbox, Elapsed: 1.5}},
			want: []string{"ok outbox 1.5 s 0 left", "1 passed, 0 failed, 0 skipped"},
			not:  []string{"chatter"},
		},
		"a subtest that fails": {
			events: slices.Concat([]event{{Action: "output", Package: outbox, Test: subtest, Output: "=== RUN   TestCrash/after-3\n"}}, long,
				[]event{{Action: "output", Package: outbox, Test: "TestCrash", Output: "--- FAIL: TestCrash\n"}, {Action: "fail", Package: outbox, Test: subtest},
					{Action: "fail", Package: outbox, Test: "TestCrash"}, {Action: "fail", Package: outbox}}),
			want: []string{"FAIL outbox", "line 0", "line 27", "... 72 more lines",
				"again: ROUNDHOUSE_TEST_SHARE=16 go test -race -run '^TestCrash$/^after-3$' " + outbox, "0 passed, 2 failed, 0 skipped"},
			not: []string{"=== RUN", "--- FAIL: TestCrash", "line 28", testenv.Servers},
			err: "1 of 1 packages failed",
		},
		"a panic": {
			events: []event{{Action: "output", Package: outbox, Test: "TestA", Output: "=== RUN   TestA\n"}, {Action: "output", Package: outbox, Test: "TestA", Output: "before\n"},
				{Action: "output", Package: outbox, Test: "TestA", Output: "panic: oh\n"}, {Action: "fail", Package: outbox}},
			want: []string{"FAIL outbox", "panic: oh", "again: ROUNDHOUSE_TEST_SHARE=16 go test -race " + outbox},
			not:  []string{"before"},
			err:  "1 of 1 packages failed",
		},
		"a build that fails": {
			events: []event{{Action: "build-output", ImportPath: outbox + " [outbox.test]", Output: "x.go:1: undefined: y\n"},
				{Action: "fail", Package: outbox, FailedBuild: outbox + " [outbox.test]"}},
			want: []string{"FAIL outbox", "x.go:1: undefined: y", "again: "},
			err:  "1 of 1 packages failed",
		},
		"a program that is missing": {
			events: []event{{Action: "output", Package: outbox, Test: "TestA", Output: "    x_test.go:1: SKIP: bind9: install it\n"},
				{Action: "skip", Package: outbox, Test: "TestA"}, {Action: "pass", Package: outbox}},
			want: []string{"Tests that were skipped, by what this machine lacks:", "1 bind9: install it", "0 passed, 0 failed, 1 skipped"},
		},
		"a package that never ran": {want: []string{"0 passed, 0 failed, 0 skipped"}, err: "1 packages did not run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in, out strings.Builder
			for _, e := range test.events {
				line, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				in.Write(append(line, '\n'))
			}
			ph := phase{dir: ".", args: []string{"-race"}, env: []string{sample.Share + "=16", testenv.Servers + "=/folder"}, pkgs: []pkg{{ImportPath: outbox}}}
			p := newProgress(&out, []phase{ph}, time.Now())
			p.read(strings.NewReader(in.String()), ph)
			err := p.finish()
			if got := fmt.Sprint(err); err != nil && got != test.err || err == nil && test.err != "" {
				t.Errorf("error %v, want %q", err, test.err)
			}
			text := out.String()
			for _, word := range test.not {
				if strings.Contains(text, word) {
					t.Errorf("%q is printed:\n%s", word, text)
				}
			}
			rest := strings.Join(strings.Fields(text), " ")
			for _, line := range test.want {
				_, after, found := strings.Cut(rest, strings.Join(strings.Fields(line), " "))
				if !found {
					t.Fatalf("no %q in its place:\n%s", line, text)
				}
				rest = after
			}
			if n := strings.Count(text, "\n") - strings.Count(text[strings.Index(text, "Slowest"):], "\n") - 1; n > failureLines {
				t.Errorf("a failure takes %d lines", n)
			}
		})
	}
}

// Each lane runs every package once under the rule of one of its passes; only the nightly one runs them a second time.
func TestLanes(t *testing.T) {
	t.Parallel()
	for name, l := range lanes {
		hosts := pkg{Name: "hosts", startsGoroutines: true, XTestImports: []string{"/internal/localhost"}}
		for _, p := range []pkg{{Name: "plain"}, {Name: "workers", startsGoroutines: true}, {Name: "main", startsGoroutines: true}, hosts} {
			var shares []int
			for _, pass := range l.passes {
				if pass.pick(p) {
					shares = append(shares, pass.share)
				}
			}
			want := map[string][]int{"short": {0}, "change": {8}, "all": {1, 16}}[name]
			if name == "change" && p.Name == "workers" {
				want = []int{64}
			}
			if name == "all" && p.Name == "hosts" {
				want = []int{1} // the tested code runs in other processes, without the detector
			}
			if diff := cmp.Diff(want, shares); diff != "" {
				t.Errorf("lane %s, package %s: shares:\n%s", name, p.Name, diff)
			}
		}
	}
}

// The race detector runs where a package starts goroutines.
func TestGoroutinesAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"go f()":                        true,
		"wg.Go(func() {})":              true,
		"if ok { go func() {}() }":      true,
		"f()":                           false,
		"x.Go()":                        false, // no function is passed
		"synctest.Test(t, func() {})":   false,
		`fmt.Println("go f() is text")`: false,
	} {
		p := pkg{Dir: t.TempDir(), GoFiles: []string{"a.go"}}
		source := "package a\nfunc g() { " + text + " }\n"
		if _, err := parser.ParseFile(token.NewFileSet(), "a.go", source, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.Dir, "a.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.inspect(); err != nil {
			t.Fatal(err)
		}
		if p.startsGoroutines != want {
			t.Errorf("%s: goroutines %v, want %v", text, p.startsGoroutines, want)
		}
	}
}
