package main

import "fmt"

// peer is the best figure that a Go library of this kind has for a metric, in the metric's unit.
type peer struct {
	value  float64
	of     string
	higher bool // more is better
}

// The configurations of the peers that hold the best figures, as they were measured on two shared cores with
// Go 1.26; each figure is the median of three runs. A ratio means something on a machine of that kind only.
const (
	dbosMemory  = "dbos, SQLite in memory"
	dbosFile    = "dbos, SQLite in a file"
	durableTask = "durabletask-go, SQLite with WAL, tuned"
)

// peers gives the best peer of each column of the comparison that has a metric here. The metric that counts the bytes of
// a parked orchestration has none: the best peers keep nothing either, and nothing is no divisor.
func peers() map[string]peer {
	return map[string]peer{
		"memory/sequence3/orchestrations_per_s/1":   {564, dbosMemory, true},   // column "seq3 x1"
		"memory/sequence3/orchestrations_per_s/10":  {631, dbosMemory, true},   // column "x10"
		"memory/sequence3/orchestrations_per_s/100": {641, dbosMemory, true},   // column "x100"
		"memory/fanout/100/activities_per_s":        {1811, durableTask, true}, // column "fan100"
		"memory/fanout/1000/activities_per_s":       {2259, dbosFile, true},    // column "fan1000"
		"memory/hello/latency_us/p50":               {1700, dbosFile, false},   // columns "p50", "p50 own wait": 1.7 ms
		"memory/hello/latency_us/p99":               {3700, dbosFile, false},   // column "p99": 3.7 ms
		"memory/sequence/100/us_per_activity":       {200, dbosMemory, false},  // column "seq100": 0.02 s
		"memory/sequence/1000/us_per_activity":      {260, dbosFile, false},    // column "seq1000": 0.26 s
	}
}

func ratioName(metric string) string { return "peers/" + metric + "/ratio" }

// compare divides our value by the peer's. So 10 is ten times better where more is better, and 0.1 where less is.
func (p peer) compare(m metric, ours float64) figure {
	goal := "ten times better: 0.1 or less"
	if p.higher {
		goal = "ten times better: 10 or more"
	}
	return figure{Name: ratioName(m.name), Value: rounded(ours / p.value), Unit: "ratio", of: m.name,
		note: fmt.Sprintf("best peer %g (%s); %s", p.value, p.of, goal)}
}
