// Package observability_test holds the alert rules against promtool, the metrics that there are, and what to do when they fire. The
// dashboards have tests of their own, in the module that makes them; what these cannot ask the program for is here.
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

// The rules are rules, and each alert is silent before its cause, fires while it lasts, and clears after it.
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

// found are the first groups of all matches.
func found(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// Every alert has a test of its own and says what to do; what it looks at is a metric that there is.
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

// What the dashboards show of Go's runtime and of the process is among the metrics that the program has.
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
