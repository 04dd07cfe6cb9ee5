package main

import (
	"context"
	"fmt"
	"time"
)

// peerRounds is the number of samples of each contestant, in turns.
const peerRounds = 3

// contest is a sample of the runtime and of its peers, with the compared values.
type contest struct {
	sample string // its name for the programs that take it
	// durableTask means that durabletask-go takes part. In the other contests it is far behind: each turn costs it a
	// poll.
	durableTask bool
	duels       []duel
}

// duel compares one value of the samples. The ratio is how many times better the runtime is than the best peer.
type duel struct {
	name         string
	unit         string
	higher       bool // more is better
	goal         float64
	ours, theirs int // the compared values
	// known is the best peer's known value if none can be measured, with its source.
	known   float64
	knownOf string
}

// The sources of the known values of unavailable peers.
const (
	knownDate    = "2026-11-22"
	knownMachine = "another machine of 2 cores, quiet, Go 1.26.8"
	knownShm     = "dbos, SQLite WAL on tmpfs"
	knownMemory  = "dbos, SQLite in memory"
	knownDurable = "durabletask-go, SQLite, a fan-out's history"
)

// contests lists the comparisons.
func contests() []contest {
	return []contest{
		{"sequence3/1", false, []duel{{"sequence3/1", "orchestrations/s", true, 12, 0, 0, 1003, knownShm}}},
		{"sequence3/10", false, []duel{{"sequence3/10", "orchestrations/s", true, 20, 0, 0, 820, knownMemory}}},
		{"sequence3/100", false, []duel{{"sequence3/100", "orchestrations/s", true, 20, 0, 0, 749, knownMemory}}},
		{"fanout/100", true, []duel{{"fanout/100", "activities/s", true, 20, 0, 0, 4278, knownMemory}}},
		{"fanout/1000", true, []duel{{"fanout/1000", "activities/s", true, 20, 0, 0, 4759, knownMemory}}},
		{"hello", false, []duel{
			{"hello/p50", "us", false, 12, 0, 0, 733, knownShm},
			{"hello/p99", "us", false, 8, 1, 1, 1265, knownShm},
		}},
		{"sequence/1000", false, []duel{{"sequence/1000", "us/activity", false, 10, 0, 0, 145, knownMemory}}},
		{"sequence/10000", false, []duel{{"sequence/10000", "us/activity", false, 10, 0, 0, 159, knownMemory}}},
		{"replay", true, []duel{
			{"replay/sequence", "ms", false, 4, 0, 0, 43.6, knownDurable},
			{"replay/fanout", "ms", false, 4, 1, 0, 43.6, knownDurable},
		}},
	}
}

// peers compares the runtime with the best form of each peer, measured in the same run.
func peers() []scenario {
	var out []scenario
	for _, c := range contests() {
		out = append(out, c.scenario(arena{}.enter))
	}
	return out
}

func (d duel) names() (ours, best, ratio string) {
	return "peers/" + d.name + "/ours", "peers/" + d.name + "/best", "peers/" + d.name + "/ratio"
}

// scenario measures a contest among the contestants of enter.
func (c contest) scenario(enter func(context.Context, contest) (field, error)) scenario {
	var metrics []metric
	for _, d := range c.duels {
		ours, best, ratio := d.names()
		metrics = append(metrics, metric{ours, d.unit, ""}, metric{best, d.unit, ""}, metric{ratio, "ratio", ""})
	}
	measure := func(ctx context.Context, limit time.Duration) ([]float64, error) {
		f, err := enter(ctx, c)
		if err != nil {
			return nil, err
		}
		defer f.leave()
		results, err := f.fight(ctx, c, limit/peerRounds)
		if err != nil {
			return nil, err
		}
		var out []float64
		for _, d := range c.duels {
			for _, v := range d.decide(results, f.missing) {
				metrics[len(out)].goal = v.note
				out = append(out, v.value)
			}
		}
		return out, nil
	}
	return scenario{metrics, measure}
}

// verdict is a value of a duel, with its meaning.
type verdict struct {
	value float64
	note  string
}

// decide compares the medians of the rounds: the first contestant's with the best of the others', or with the known
// value if there are no others. missing is the reason for that. It returns our value, the best peer's, and the ratio.
func (d duel) decide(results []sampled, missing error) [3]verdict {
	ours := median(column(results[0].rounds, d.ours))
	best, bestNote, whom := d.measured(results[1:])
	if bestNote == "" {
		best = d.known
		whom = fmt.Sprintf("%s as of %s on %s, NOT measured in this run", d.knownOf, knownDate, knownMachine)
		bestNote = fmt.Sprintf("%s; here: %v", whom, missing)
	}
	ratio := best / ours
	if d.higher {
		ratio = ours / best
	}
	return [3]verdict{
		{ours, fmt.Sprintf("memory store; median of %d rounds, each in a new process", peerRounds)},
		{best, bestNote},
		{ratio, fmt.Sprintf("goal %g or more: times better than %s", d.goal, whom)},
	}
}

// measured returns the best of the peers that were measured, if any was.
func (d duel) measured(results []sampled) (best float64, note, whom string) {
	for _, r := range results {
		if m := median(column(r.rounds, d.theirs)); note == "" || (m > best) == d.higher {
			best, note, whom = m, r.name+"; measured in this run, in turns", r.name+", the best peer in this run"
		}
	}
	return best, note, whom
}
