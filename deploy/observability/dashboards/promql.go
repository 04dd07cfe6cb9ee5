package dashboards

import (
	"fmt"
	"strings"
)

// lookBack is for how long a value of what storage holds is good. It bridges a change of the process that shows it, as the alert rules
// do; unlike a maximum over that time, it does not stay when the value falls.
const lookBack = "5m"

// ours selects the series of a metric that the chosen job has.
func ours(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{`job="$job"`}, matchers...), ", ") + "}"
}

// aggregated is an expression, aggregated by labels, which may be none.
func aggregated(operator, by, expression string) string {
	if by != "" {
		operator += " by (" + by + ")"
	}
	return operator + " (" + expression + ")"
}

// held is a gauge of what storage holds: one process shows it, so the greatest value is the only one.
func held(metric, by string, matchers ...string) string {
	return aggregated("max", by, "last_over_time("+ours(metric, matchers...)+"["+lookBack+"])")
}

// heldInAll is the sum of such a gauge over the values of its label.
func heldInAll(metric, label string, matchers ...string) string {
	return aggregated("sum", "", held(metric, label, matchers...))
}

// perSecond is by how much a counter grows in a second, in all processes together.
func perSecond(metric, by string, matchers ...string) string {
	return aggregated("sum", by, "rate("+ours(metric, matchers...)+"[$__rate_interval])")
}

// perMinute is the same for a minute, for what happens rarely.
func perMinute(metric, by string, matchers ...string) string {
	return "60 * " + perSecond(metric, by, matchers...)
}

// within is by how much a counter grew within a time, in all processes together.
func within(duration, metric, by string, matchers ...string) string {
	return aggregated("sum", by, "increase("+ours(metric, matchers...)+"["+duration+"])")
}

// quantile is one of a histogram, over all processes.
func quantile(q float64, histogram, by string, matchers ...string) string {
	if by = "le, " + by; by == "le, " {
		by = "le"
	}
	return fmt.Sprintf("histogram_quantile(%g, %s)", q, perSecond(histogram+"_bucket", by, matchers...))
}

// percentiles are the three that durations are looked at by.
func percentiles(histogram string, matchers ...string) []line {
	return []line{
		{query: quantile(0.5, histogram, "", matchers...), legend: "p50", exemplars: true},
		{query: quantile(0.95, histogram, "", matchers...), legend: "p95", exemplars: true},
		{query: quantile(0.99, histogram, "", matchers...), legend: "p99", exemplars: true},
	}
}

// ofLatest is a gauge of a poller in the process that committed last: the others show what was when they did.
func ofLatest(metric string, matchers ...string) string {
	last := ours("roundhouse_poller_last_success_timestamp_seconds", matchers...)
	return fmt.Sprintf("max by (poller) (%s and on (instance, poller) (%s == on (poller) group_left () max by (poller) (%s)))",
		ours(metric, matchers...), last, last)
}

// sinceLast is how long ago a time was, which a process shows as 0 as long as it has not seen it. Processes that are gone count as long as
// they are within the chosen time.
func sinceLast(metric, by string, matchers ...string) string {
	return "time() - " + aggregated("max", by, "last_over_time("+ours(metric, matchers...)+"[$__range]) > 0")
}
