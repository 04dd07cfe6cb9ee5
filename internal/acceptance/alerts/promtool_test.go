package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/vibedata/roundhouse/internal/daemon"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// rulesFile is the path of the rules.
const rulesFile = "../../../deploy/observability/prometheus/rules.yaml"

// ruled holds the alerts and the metrics that they query.
type ruled struct {
	file            string
	alerts, metrics []string
}

// readRules reads the file of rules.
func readRules(t testing.TB) ruled {
	t.Helper()
	path, err := filepath.Abs(rulesFile)
	text, readErr := os.ReadFile(path)
	testenv.OK(t, errors.Join(err, readErr))
	r := ruled{file: path}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(text), -1) {
		r.alerts = append(r.alerts, m[1])
	}
	r.metrics = regexp.MustCompile(`\broundhouse_[a-z_]+\b`).FindAllString(string(text), -1)
	slices.Sort(r.metrics)
	r.metrics = slices.Compact(r.metrics)
	return r
}

// unitTest is a file of promtool test rules. It is written as JSON, a subset of YAML.
type unitTest struct {
	RuleFiles          []string    `json:"rule_files"`
	EvaluationInterval string      `json:"evaluation_interval"`
	Tests              []testGroup `json:"tests"`
}

type testGroup struct {
	Name        string        `json:"name"`
	Interval    string        `json:"interval"`
	InputSeries []inputSeries `json:"input_series"`
	Expects     []expectation `json:"promql_expr_test"`
}

type expectation struct {
	Expr     string   `json:"expr"`
	EvalTime string   `json:"eval_time"`
	Samples  []sample `json:"exp_samples"`
}

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// expect states that an expression returns these alerts, and no others, at a minute.
func expect(expr string, minute int, alerts ...string) expectation {
	e := expectation{Expr: "group by (alertname) (" + expr + ")", EvalTime: fmt.Sprintf("%dm", minute), Samples: []sample{}}
	for _, a := range alerts {
		e.Samples = append(e.Samples, sample{fmt.Sprintf("{alertname=%q}", a), 1})
	}
	return e
}

// expectations are: no alert has fired in the first phase; at the end of the second, the alert fires, and only it and
// its related alerts have ever fired; at the end of the third, none fires or is pending.
func (r *recording) expectations(s scenario) []expectation {
	well, broken, mended := r.ends[0], r.ends[1], r.ends[2]
	fired := func(since, until int, alerts ...string) expectation {
		return expect(fmt.Sprintf(`last_over_time(ALERTS{alertstate="firing"}[%dm])`, until-since), until, alerts...)
	}
	all := []expectation{fired(0, well), expect("ALERTS", mended)}
	if s.alert == "" {
		return append(all, fired(0, mended, s.also...))
	}
	return append(all,
		expect(fmt.Sprintf(`ALERTS{alertname=%q, alertstate="firing"}`, s.alert), broken, s.alert),
		fired(0, mended, append(slices.Clone(s.also), s.alert)...))
}

// promtool returns the path of that program. Without it, the test is skipped or fails.
func promtool(t *testing.T) (path string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		testenv.Started(t, &daemon.MissingError{Tool: "promtool", Get: "install the package prometheus", Err: err})
	}
	return path
}

// judge evaluates the alerts with promtool.
func judge(t *testing.T, promtool string, r *recording, rules ruled, s scenario) {
	t.Helper()
	interval := fmt.Sprintf("%dm", r.step())
	group := testGroup{Name: t.Name(), Interval: interval, InputSeries: r.play(r.ends[2]), Expects: r.expectations(s)}
	text, err := json.MarshalIndent(unitTest{[]string{rules.file}, interval, []testGroup{group}}, "", " ")
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err = errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("well until minute %d, broken until %d, mended until %d: %v\n%s", r.ends[0], r.ends[1], r.ends[2], err, out)
		r.dump(t)
	}
}

// dump logs the recorded metrics that have changed.
func (r *recording) dump(t *testing.T) {
	t.Helper()
	for _, s := range r.play(r.ends[2]) {
		if !regexp.MustCompile(`^(_x\d+ )?\S+\+0x\d+$`).MatchString(s.Values) {
			t.Logf("%s: %.400s", s.Series, s.Values)
		}
	}
}
