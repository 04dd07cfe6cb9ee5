// Package observability_test checks the alert rules with promtool, and against the existing metrics and the
// documented instructions. The dashboards have their own tests, in the module that makes them. This package has the
// tests of the dashboards that need the program.
package observability_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/api/metrics"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// The rules are valid. Each alert is silent before its cause, fires while the cause lasts, and clears afterwards.
func TestRules(t *testing.T) {
	t.Parallel()
	testenv.Run(t, "prometheus", "promtool", "prometheus", "check", "rules", "rules.yaml")
	testenv.Run(t, "prometheus", "promtool", "prometheus", "test", "rules", "rules_test.yaml")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// found returns the first groups of all matches.
func found(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// Every alert has a test of its own and a link to the instructions, and uses existing metrics.
func TestEveryAlert(t *testing.T) {
	t.Parallel()
	rules, tests := read(t, "prometheus/rules.yaml"), read(t, "prometheus/rules_test.yaml")
	recovery, documented := read(t, "../../docs/recovery.md"), read(t, "../../docs/observability.md")
	alerts := found(`alert: (\w+)`, rules)
	if len(alerts) < 25 {
		t.Fatalf("there are only %d alerts", len(alerts))
	}
	tested := found(`- name: (\w+)`, tests)
	for _, alert := range alerts {
		if !slices.Contains(tested, alert) {
			t.Errorf("%s has no test", alert)
		}
	}
	var anchors []string
	for _, heading := range found(`(?m)^#+ (.*)$`, recovery) {
		anchors = append(anchors, strings.ReplaceAll(strings.ToLower(regexp.MustCompile("[^a-zA-Z0-9 _-]").ReplaceAllString(heading, "")), " ", "-"))
	}
	runbooks := found(`runbook_url: \S*docs/recovery\.md#([\w-]+)`, rules)
	if len(runbooks) != len(alerts) {
		t.Errorf("%d alerts have %d runbooks", len(alerts), len(runbooks))
	}
	for _, anchor := range runbooks {
		if !slices.Contains(anchors, anchor) {
			t.Errorf("docs/recovery.md has no heading for #%s", anchor)
		}
	}
	for _, metric := range found(`(roundhouse_\w+)`, regexp.MustCompile(`job_(engine|destination):\S+`).ReplaceAllString(rules, "")) {
		base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(metric, "")
		if !strings.Contains(documented, metric) && !strings.Contains(documented, base) {
			t.Errorf("no metric is called %s", metric)
		}
	}
}

// The metrics of the Go runtime and the process that the dashboards show are among the program's metrics.
func TestDashboardsOfProcesses(t *testing.T) {
	t.Parallel()
	descs, err := metrics.New().Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, d := range descs {
		there = append(there, found(`fqName: "(\w+)"`, d.String())...)
	}
	paths, err := filepath.Glob("grafana/*.json")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, path := range paths {
		for _, name := range found(`\b((?:go|process)_\w+)\{`, read(t, path)) {
			shown++
			if !slices.Contains(there, name) {
				t.Errorf("%s: no metric is called %s", path, name)
			}
		}
	}
	if shown < 8 {
		t.Errorf("only %d metrics of processes were found in %q", shown, paths)
	}
}
