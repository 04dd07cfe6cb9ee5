package dashboards

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// query is a query of a dashboard.
type query struct {
	// at is the place of the query; legend is the format of the names of its series.
	at, expr, legend string
	exemplar         bool
}

// filled replaces Grafana's variables with example values.
var filled = strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h", "$job", "roundhouse", "$engine", ".*", "$activity", "a|b",
	"$destination", ".*", "$poller", ".*", "$instance", ".*")

// labelValues matches the query of a variable.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// queries returns the queries of all panels, annotations and variables, with the variables in them replaced by
// values.
func queries(t *testing.T) (all []query) {
	t.Helper()
	for name, d := range documents(t) {
		for _, p := range d.panelsOf() {
			for _, q := range p.Targets {
				all = append(all, query{name + ": " + p.Title + ", " + q.RefID, filled.Replace(q.Expr), q.LegendFormat, q.Exemplar})
			}
		}
		for _, a := range d.Annotations.List {
			all = append(all, query{at: name + ": " + a.Name, expr: filled.Replace(a.Target.Expr), legend: a.TitleFormat})
		}
		for _, v := range d.Templating.List {
			if v.Type != "query" {
				continue
			}
			m := labelValues.FindStringSubmatch(v.Query)
			if m == nil {
				t.Errorf("%s: the variable %s asks for %q", name, v.Name, v.Query)
				continue
			}
			all = append(all, query{at: name + ": variable " + v.Name, expr: "count by (" + m[2] + ") (" + filled.Replace(m[1]) + ")"})
		}
	}
	if len(all) < 100 {
		t.Fatalf("only %d queries were found", len(all))
	}
	return all
}

// promtool runs Prometheus' checker.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	testenv.Run(t, ".", "promtool", "prometheus", args...)
}

// written writes a file for promtool and returns its path.
func written(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// recorded returns rules that record queries as q0, q1 and so on.
func recorded(exprs ...string) string {
	text := "groups:\n  - name: queries\n    rules:\n"
	for i, e := range exprs {
		text += fmt.Sprintf("      - record: q%d\n        expr: %q\n", i, e)
	}
	return text
}

// Prometheus accepts every query.
func TestQueriesAreRead(t *testing.T) {
	t.Parallel()
	var exprs []string
	for _, q := range queries(t) {
		if strings.Contains(q.expr, "$") {
			t.Errorf("%s has a variable that the test does not know: %s", q.at, q.expr)
		}
		exprs = append(exprs, q.expr)
	}
	promtool(t, "check", "rules", written(t, t.TempDir(), "rules.yaml", recorded(exprs...)))
}

// The queries of the dashboards compute the expected values from given series.
func TestQueriesCompute(t *testing.T) {
	t.Parallel()
	find := func(at string) string {
		for _, q := range queries(t) {
			if q.at == at {
				return q.expr
			}
		}
		t.Fatalf("there is no query of %s", at)
		return ""
	}
	dir := t.TempDir()
	written(t, dir, "rules.yaml", recorded(
		find("roundhouse-outbox-and-pollers.json: Lag, A"),
		find("roundhouse-overview.json: Dead letters, A"),
		find("roundhouse-overview.json: Alerts that fire, A"),
		find("roundhouse-overview.json: Versions"),
		find("roundhouse-engine.json: Since the last success, A"),
	))
	promtool(t, "test", "rules", written(t, dir, "rules_test.yaml", read(t, "testdata/compute.yaml")))
}
