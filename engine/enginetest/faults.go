package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
)

// Plan counts the storage calls of a process and breaks one of them: call At, from 1, has Fault. The zero value only
// counts.
type Plan = faults.Plan

// Fault is a fault of a storage call.
type Fault = faults.Fault

// Call is a storage call.
type Call = faults.Call

// The faults of a process that dies. FailEverywhere also tries answers with an unknown outcome, refusals, and slow
// calls.
const (
	CrashBefore = faults.CrashBefore
	CrashAfter  = faults.CrashAfter
)

// maxFailures is the number of failed cases after which FailEverywhere stops: more would report the same failure.
const maxFailures = 3

// FailEverywhere runs a test without faults, and then once for every storage call of its plan and every fault of that
// call. Each run is a subtest and a bubble of synctest. The test passes the plan to Restart. Skip, unless it is nil,
// excludes faults that storage cannot return; at counts calls from 1. With -short, it is a sample (see
// CONTRIBUTING.md).
func FailEverywhere(t *testing.T, skip func(at int, c Call, f Fault) bool, run func(t *testing.T, plan *Plan)) {
	t.Helper()
	counted := &Plan{}
	synctest.Test(t, func(t *testing.T) { run(t, counted) })
	if t.Failed() {
		return // faults would only report the same failure
	}
	failures := 0
	for i, call := range counted.Calls() {
		for _, fault := range faults.Faults() {
			at := i + 1
			if !sample.Keep(t, at, fault) || skip != nil && skip(at, call, fault) {
				continue
			}
			passed := t.Run(fmt.Sprintf("%d-%s-%s-%s", at, call.Service, call.Operation, fault), func(t *testing.T) {
				t.Cleanup(func() {
					if t.Failed() {
						t.Log("repeat it: " + repeat(t.Name()))
					}
				})
				synctest.Test(t, func(t *testing.T) { run(t, &Plan{At: at, Fault: fault}) })
			})
			if !passed {
				failures++
			}
			if failures == maxFailures {
				t.Fatalf("%d cases failed; the others are not tried", failures)
			}
		}
	}
}

// repeat returns the command that repeats one test.
func repeat(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return fmt.Sprintf("%s=1 go test %s -run '%s'", sample.Share, folder(), strings.Join(parts, "/"))
}

// folder returns the folder of the package under test, relative to its module.
func folder() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for root := dir; root != filepath.Dir(root); root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			rest, _ := filepath.Rel(root, dir)
			return "./" + filepath.ToSlash(rest)
		}
	}
	return "."
}
