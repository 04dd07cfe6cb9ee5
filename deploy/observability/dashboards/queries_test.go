package dashboards

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/daemon"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// query is one that a dashboard has.
type query struct {
	// at says where it is, legend how its series are called.
	at, expr, legend string
	exemplar         bool
}

// filled are the variables of Grafana with values that they could have.
var filled = strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h", "$job", "roundhouse", "$engine", ".*", "$activity", "a|b",
	"$destination", ".*", "$poller", ".*", "$instance", ".*")

// labelValues is what a variable asks for.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// queries are those of all panels, annotations and variables, with values for the variables in them.
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

// promtool runs the checker of Prometheus.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		testenv.Started(t, &daemon.MissingError{Tool: "promtool", Get: "install the package prometheus", Err: err})
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// written is a file for promtool.
func written(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// recorded are rules that record queries as q0, q1 and so on.
func recorded(exprs ...string) string {
	text := "groups:\n  - name: queries\n    rules:\n"
	for i, e := range exprs {
		text += fmt.Sprintf("      - record: q%d\n        expr: %q\n", i, e)
	}
	return text
}

// Every query is one that Prometheus takes.
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

// What the dashboards compute is what they say: the values of a moment, out of series that there could be.
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
	promtool(t, "test", "rules", written(t, dir, "rules_test.yaml", `rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - name: the lag is that of the process that committed last
    interval: 1m
    input_series:
      - {series: 'roundhouse_poller_lag_seconds{job="roundhouse", instance="old", poller="p"}', values: '900x20'}
      - {series: 'roundhouse_poller_lag_seconds{job="roundhouse", instance="new", poller="p"}', values: '3x20'}
      - {series: 'roundhouse_poller_last_success_timestamp_seconds{job="roundhouse", instance="old", poller="p"}', values: '100x20'}
      - {series: 'roundhouse_poller_last_success_timestamp_seconds{job="roundhouse", instance="new", poller="p"}', values: '200x20'}
    promql_expr_test:
      - {expr: q0, eval_time: 10m, exp_samples: [{labels: 'q0{poller="p"}', value: 3}]}
  - name: what storage holds is counted once, while the process that shows it changes, and falls at once
    interval: 1m
    input_series:
      - {series: 'roundhouse_dead_letters{job="roundhouse", instance="a", engine="hmac", status="Pending"}', values: '7x5 2x5 stale'}
      - {series: 'roundhouse_dead_letters{job="roundhouse", instance="b", engine="hmac", status="Pending"}', values: '_x12 2x20'}
      - {series: 'roundhouse_dead_letters{job="roundhouse", instance="a", engine="spn", status="Pending"}', values: '1x30'}
      - {series: 'roundhouse_dead_letters{job="roundhouse", instance="a", engine="spn", status="Resolved"}', values: '9x30'}
      - {series: 'roundhouse_dead_letters{job="another", instance="a", engine="spn", status="Pending"}', values: '9x30'}
    promql_expr_test:
      - {expr: q1, eval_time: 5m, exp_samples: [{labels: 'q1', value: 8}]}
      - {expr: q1, eval_time: 7m, exp_samples: [{labels: 'q1', value: 3}]}
      - {expr: q1, eval_time: 12m, exp_samples: [{labels: 'q1', value: 3}]}
      - {expr: q1, eval_time: 14m, exp_samples: [{labels: 'q1', value: 3}]}
  - name: alerts that fire, since when, and none that is pending, of others or of another job
    interval: 1m
    input_series:
      - {series: 'ALERTS{job="roundhouse", alertname="RoundhouseOutboxDead", alertstate="firing", severity="warning"}', values: '1x20'}
      - {series: 'ALERTS_FOR_STATE{job="roundhouse", alertname="RoundhouseOutboxDead", severity="warning"}', values: '60x20'}
      - {series: 'ALERTS{job="roundhouse", alertname="RoundhouseOutboxOld", alertstate="pending", severity="warning"}', values: '1x20'}
      - {series: 'ALERTS_FOR_STATE{job="roundhouse", alertname="RoundhouseOutboxOld", severity="warning"}', values: '60x20'}
      - {series: 'ALERTS{job="another", alertname="RoundhouseOutboxDead", alertstate="firing", severity="warning"}', values: '1x20'}
      - {series: 'ALERTS_FOR_STATE{job="another", alertname="RoundhouseOutboxDead", severity="warning"}', values: '60x20'}
      - {series: 'ALERTS{job="roundhouse", alertname="Watchdog", alertstate="firing", severity="warning"}', values: '1x20'}
      - {series: 'ALERTS_FOR_STATE{job="roundhouse", alertname="Watchdog", severity="warning"}', values: '60x20'}
    promql_expr_test:
      - {expr: q2, eval_time: 10m, exp_samples: [{labels: 'q2{alertname="RoundhouseOutboxDead", job="roundhouse", severity="warning"}', value: 540}]}
  - name: a version begins once
    interval: 1m
    input_series:
      - {series: 'roundhouse_build_info{job="roundhouse", instance="a", version="1"}', values: '1x70'}
      - {series: 'roundhouse_build_info{job="roundhouse", instance="b", version="2"}', values: '_x15 1x60'}
    promql_expr_test:
      - {expr: q3, eval_time: 14m, exp_samples: []}
      - {expr: q3, eval_time: 17m, exp_samples: [{labels: 'q3{version="2"}', value: 1}]}
      - {expr: q3, eval_time: 27m, exp_samples: []}
  - name: the last success of processes that are gone counts, and what was not seen does not
    interval: 1m
    input_series:
      - {series: 'roundhouse_engine_last_success_timestamp_seconds{job="roundhouse", instance="gone", engine="hmac"}', values: '60x5 stale'}
      - {series: 'roundhouse_engine_last_success_timestamp_seconds{job="roundhouse", instance="new", engine="hmac"}', values: '_x5 0x60'}
      - {series: 'roundhouse_engine_last_success_timestamp_seconds{job="roundhouse", instance="new", engine="spn"}', values: '0x60'}
    promql_expr_test:
      - {expr: q4, eval_time: 60m, exp_samples: [{labels: 'q4{engine="hmac"}', value: 3540}]}
`))
}
