package dashboards

import (
	"fmt"
	"strings"
)

// lookBack is how long a value about the contents of storage is valid. It bridges a change of the exporting process,
// as the alert rules do. Unlike a maximum over that time, it does not keep the old value when the value falls.
const lookBack = "5m"

// ours selects the series of a metric for the selected job.
func ours(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{`job="$job"`}, matchers...), ", ") + "}"
}

// aggregated returns an expression aggregated by labels. by may be empty.
func aggregated(operator, by, expression string) string {
	if by != "" {
		operator += " by (" + by + ")"
	}
	return operator + " (" + expression + ")"
}

// held returns a gauge of the contents of storage: only one process exports it, so the greatest value is the only
// one.
func held(metric, by string, matchers ...string) string {
	return aggregated("max", by, "last_over_time("+ours(metric, matchers...)+"["+lookBack+"])")
}

// heldInAll returns the sum of such a gauge over the values of its label.
func heldInAll(metric, label string, matchers ...string) string {
	return aggregated("sum", "", held(metric, label, matchers...))
}

// perSecond returns the increase of a counter per second, over all processes.
func perSecond(metric, by string, matchers ...string) string {
	return aggregated("sum", by, "rate("+ours(metric, matchers...)+"[$__rate_interval])")
}

// perMinute returns the increase per minute, for rare events.
func perMinute(metric, by string, matchers ...string) string {
	return "60 * " + perSecond(metric, by, matchers...)
}

// within returns the increase of a counter within a duration, over all processes.
func within(duration, metric, by string, matchers ...string) string {
	return aggregated("sum", by, "increase("+ours(metric, matchers...)+"["+duration+"])")
}

// quantile returns a quantile of a histogram, over all processes.
func quantile(q float64, histogram, by string, matchers ...string) string {
	if by = "le, " + by; by == "le, " {
		by = "le"
	}
	return fmt.Sprintf("histogram_quantile(%g, %s)", q, perSecond(histogram+"_bucket", by, matchers...))
}

// percentiles returns the three percentiles that graphs of durations show.
func percentiles(histogram string, matchers ...string) []line {
	return []line{
		{query: quantile(0.5, histogram, "", matchers...), legend: "p50", exemplars: true},
		{query: quantile(0.95, histogram, "", matchers...), legend: "p95", exemplars: true},
		{query: quantile(0.99, histogram, "", matchers...), legend: "p99", exemplars: true},
	}
}

// ofLatest returns a gauge of a poller from the process that committed last: the values of the other processes date
// from their own last commits.
func ofLatest(metric string, matchers ...string) string {
	last := ours("roundhouse_poller_last_success_timestamp_seconds", matchers...)
	return fmt.Sprintf("max by (poller) (%s and on (instance, poller) (%s == on (poller) group_left () max by (poller) (%s)))",
		ours(metric, matchers...), last, last)
}

// sinceLast returns the time since an event. A process exports 0 until it has seen the event. Processes that have
// ended count as long as they are within the selected time.
func sinceLast(metric, by string, matchers ...string) string {
	return "time() - " + aggregated("max", by, "last_over_time("+ours(metric, matchers...)+"[$__range]) > 0")
}
