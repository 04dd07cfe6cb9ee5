package dashboards

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"go.yaml.in/yaml/v3"
)

// metric is the known facts of a metric.
type metric struct {
	kind   string
	labels []string
	// shared marks a gauge of the contents of storage, which one process exports.
	shared bool
}

// targetLabels are the labels that Prometheus adds.
var targetLabels = []string{"job", "instance"}

// known returns the metrics of the table in docs/observability.md and those that Prometheus and its rules add. A test
// of package handler compares that table with the program. A test of deploy/observability compares the metrics of Go
// and of the process with the registry.
func known(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{}
	text := read(t, "../../../docs/observability.md")
	shared := strings.Index(text, "### What storage holds")
	line := regexp.MustCompile("(?m)^\\| `(roundhouse_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([a-z_`, ]*) \\|")
	for _, m := range line.FindAllStringSubmatchIndex(text, -1) {
		of := metric{kind: text[m[4]:m[5]], labels: slices.Clone(targetLabels), shared: m[0] > shared}
		for _, label := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(text[m[6]:m[7]], -1) {
			name := label[1]
			if slices.Contains(targetLabels, name) {
				name = "exported_" + name
			}
			of.labels = append(of.labels, name)
		}
		all[text[m[2]:m[3]]] = of
	}
	if len(all) < 60 || shared < 0 {
		t.Fatalf("docs/observability.md has only %d metrics", len(all))
	}
	return all
}

// others returns series that the program does not export under names of its own.
func others(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{
		"up":                        {kind: "gauge", labels: targetLabels},
		"ALERTS":                    {kind: "gauge", labels: slices.Concat(targetLabels, []string{"alertname", "alertstate", "severity"})},
		"ALERTS_FOR_STATE":          {kind: "gauge", labels: slices.Concat(targetLabels, []string{"alertname", "severity"})},
		"go_gc_duration_seconds":    {kind: "summary", labels: slices.Concat(targetLabels, []string{"quantile"})},
		"process_cpu_seconds_total": {kind: "counter", labels: targetLabels},
	}
	for _, name := range []string{"go_goroutines", "go_memstats_heap_alloc_bytes", "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds"} {
		all[name] = metric{kind: "gauge", labels: targetLabels}
	}
	for _, r := range rules(t) {
		if r.Record != "" {
			by := regexp.MustCompile(`by \(([^)]*)\)`).FindStringSubmatch(r.Expr)
			all[r.Record] = metric{kind: "gauge", labels: strings.Split(by[1], ", ")}
		}
	}
	return all
}

// rule is a Prometheus rule.
type rule struct {
	Record, Alert, Expr string
	Labels              map[string]string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var document struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(read(t, "../prometheus/rules.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	for _, g := range document.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 25 {
		t.Fatalf("only %d rules were found", len(all))
	}
	return all
}

// checker checks the parts of a query.
type checker struct {
	t       *testing.T
	at      string
	metrics map[string]metric
	// used are the metrics found so far.
	used map[string]bool
}

// around is the nearest function and the nearest aggregation around a part of a query.
type around struct{ function, aggregation string }

// labels checks a part of a query and returns the labels that its series may have.
func (c *checker) labels(e metricsql.Expr, in around) []string {
	switch e := e.(type) {
	case *metricsql.MetricExpr:
		return c.selected(e, in)
	case *metricsql.RollupExpr:
		return c.labels(e.Expr, in)
	case *metricsql.FuncExpr:
		in.function = e.Name
		return c.labelsOfAll(e.Args, in)
	case *metricsql.AggrFuncExpr:
		have := c.labelsOfAll(e.Args, around{aggregation: e.Name})
		if e.Name == "topk" {
			return have
		}
		c.have(have, e.Modifier.Args, "is aggregated by")
		return e.Modifier.Args
	case *metricsql.BinaryOpExpr:
		left, right := c.labels(e.Left, in), c.labels(e.Right, in)
		for _, side := range [][]string{left, right} {
			if strings.EqualFold(e.GroupModifier.Op, "on") {
				c.have(side, e.GroupModifier.Args, "is matched by")
			}
		}
		return slices.Concat(left, right)
	}
	return nil
}

func (c *checker) labelsOfAll(args []metricsql.Expr, in around) (all []string) {
	for _, a := range args {
		all = append(all, c.labels(a, in)...)
	}
	return all
}

// have reports missing labels.
func (c *checker) have(there, used []string, how string) {
	for _, label := range used {
		if !slices.Contains(there, label) {
			c.t.Errorf("%s: what %s %s has only %q", c.at, how, label, there)
		}
	}
}

// selected checks which series are selected and how they are used.
func (c *checker) selected(e *metricsql.MetricExpr, in around) []string {
	for _, filters := range e.LabelFilterss {
		name := filters[0].Value
		base := name
		of, ok := c.metrics[name]
		if !ok {
			base = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			of, ok = c.metrics[base]
			ok = ok && of.kind == "histogram"
			of.kind, of.labels = "counter", append(slices.Clone(of.labels), "le")
		}
		if !ok || filters[0].Label != "__name__" {
			c.t.Errorf("%s: there is no metric %s", c.at, name)
			continue
		}
		c.used[base] = true
		var labels []string
		for _, f := range filters[1:] {
			labels = append(labels, f.Label)
		}
		c.have(of.labels, labels, "is chosen by")
		if !slices.Contains(labels, "job") && !strings.Contains(c.at, "variable job") {
			c.t.Errorf("%s: %s is of any job", c.at, name)
		}
		c.treated(name, of, in)
		return of.labels
	}
	return nil
}

// treated reports a metric that is used in a way that does not fit its kind.
func (c *checker) treated(name string, of metric, in around) {
	if strings.Contains(c.at, "variable ") {
		return
	}
	grows := slices.Contains([]string{"rate", "increase"}, in.function)
	switch {
	case of.kind == "counter" && (!grows || in.aggregation != "sum"):
		c.t.Errorf("%s: the counter %s has to be a rate or an increase, and summed up over processes: %+v", c.at, name, in)
	case of.kind != "counter" && grows:
		c.t.Errorf("%s: %s is a %s and has no rate", c.at, name, of.kind)
	case of.kind == "histogram":
		c.t.Errorf("%s: %s is a histogram, whose series have other names", c.at, name)
	case of.shared && (in.aggregation != "max" || in.function != "last_over_time"):
		c.t.Errorf("%s: one process shows %s, so it is max (last_over_time(...)): %+v", c.at, name, in)
	}
}

// Every query uses existing metrics and labels and treats each metric according to its kind; every metric is shown.
func TestMetrics(t *testing.T) {
	t.Parallel()
	metrics, used := known(t), map[string]bool{}
	maps.Copy(metrics, others(t))
	for _, q := range queries(t) {
		e, err := metricsql.Parse(q.expr)
		if err != nil {
			t.Errorf("%s: %v", q.at, err)
			continue
		}
		c := &checker{t, q.at, metrics, used}
		labels := c.labels(e, around{})
		for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.legend, -1) {
			c.have(labels, m[1:], "is called by")
		}
		if timed := strings.Contains(q.expr, "_seconds_bucket"); timed != q.exemplar {
			t.Errorf("%s: exemplars are shown: %v", q.at, q.exemplar)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if !used[name] {
			t.Errorf("no dashboard shows %s", name)
		}
	}
}

// The table of alerts covers every alert: its query selects each alert, and each of their labels has a title.
func TestEveryAlertIsShown(t *testing.T) {
	t.Parallel()
	d := documents(t)["roundhouse-overview.json"]
	p := d.panelsOf()[0]
	filter := regexp.MustCompile(`alertname=~"([^"]*)", severity=~"([^"]*)"`).FindStringSubmatch(p.Targets[0].Expr)
	if filter == nil {
		t.Fatalf("%s: %s", p.Title, p.Targets[0].Expr)
	}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if !regexp.MustCompile("^("+filter[1]+")$").MatchString(r.Alert) || !regexp.MustCompile("^("+filter[2]+")$").MatchString(r.Labels["severity"]) {
			t.Errorf("%s with the severity %s is not shown", r.Alert, r.Labels["severity"])
		}
		for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(r.Expr, -1) {
			for label := range strings.SplitSeq(by[1], ", ") {
				if label != "job" && !strings.Contains(read(t, folder+"/roundhouse-overview.json"), `"`+label+`": "`) {
					t.Errorf("%s: the label %s has no title", r.Alert, label)
				}
			}
		}
	}
}
