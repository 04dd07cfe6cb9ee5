package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vibedata/roundhouse/internal/hosts"
)

const (
	// recoveryRuns is the number of runs of each breakage, recoveryAtOnce the number of parallel ones: most of a run
	// is waiting, each has storage and hosts of its own, and more would measure the machine.
	recoveryRuns   = 20
	recoveryAtOnce = 5
	// recoveryLimit bounds the wait for orchestrations to continue. A longer one counts with this time, and is
	// reported.
	recoveryLimit = 90 * time.Second
	// signEvery is the default interval of a node's heartbeat. The breakage comes at another moment of it in each
	// run.
	signEvery = 10 * time.Second
	// away is the duration of a storage outage.
	away = 12 * time.Second
	// hostsGiveUp is the time without storage after which the real host ends itself.
	hostsGiveUp = 10 * time.Second
)

// breakage is a way to break hosts with orchestrations in progress.
type breakage struct {
	name  string
	goal  string
	hosts int
	work  []load
	// strike breaks a part, and returns when work could continue, with the work in progress.
	strike func(context.Context, *trial) (time.Time, hosts.Hand, error)
	// on reports whether an orchestration has continued.
	on func(before, now hosts.Progress) bool
}

// load is work that is sent before the breakage.
type load struct {
	count int
	work  hosts.Work
}

// mixed is in the middle of long activities, of timers and of event handling at the breakage; steady commits a round
// every half second. Both leave hosts capacity: a host receives no messages while it has nine of a queue in progress.
// Work handed back by an ending host needs capacity at the other one, so the load for that is half.
func mixed(n int) []load {
	return []load{
		{3 * n, hosts.Work{Calls: 30, Lasts: 3 * time.Second}},
		{2 * n, hosts.Work{Naps: 10, Nap: 20 * time.Second}},
		{3 * n, hosts.Work{Event: true, Calls: 30, Lasts: 3 * time.Second}},
	}
}

func steady(n int) []load {
	return []load{{6 * n, hosts.Work{Calls: 300, Lasts: 500 * time.Millisecond}}}
}

// breakages lists the breakages.
func breakages() []breakage {
	return []breakage{
		{"host_killed", "goal 30", 2, mixed(2), killFuller, hosts.FurtherOn},
		{"handler_killed", "goal 5", 1, mixed(1), killHandler, hosts.Elsewhere},
		{"clean_end", "goal 2", 2, steady(1), endFuller, hosts.Elsewhere},
		{"storage_gone", "goal 10", 2, steady(2), storageGone, hosts.FurtherOn},
		{"storage_gone/hosts_end", "goal 30", 2, steady(2), storageAndHostsGone, hosts.FurtherOn},
		{"all_killed", "goal 30", 2, mixed(2), killAll, hosts.FurtherOn},
	}
}

// recoveries lists the measurements of recovery.
func recoveries() []scenario {
	var all []scenario
	for _, b := range breakages() {
		all = append(all, b.scenario())
	}
	return append(all, takeoverOfMany(), signsOfLife())
}

// scenario measures the time until the last orchestration in progress has continued, over all runs.
func (b breakage) scenario() scenario {
	name := "recovery/" + b.name
	metrics := []metric{
		{name + "/p50_s", "s", fmt.Sprintf("until the last one that was in hand went on, of %d runs", recoveryRuns)},
		{name + "/p99_s", "s", b.goal},
		{name + "/in_hand", "orchestrations", "had committed something when it broke, in all runs"},
		{name + "/late", "orchestrations", fmt.Sprintf("of these, did not go on within %v, with which they count", recoveryLimit)},
		{name + "/not_begun", "messages", "were received and had committed nothing: not in the times above"},
		{name + "/not_begun_late", "messages", fmt.Sprintf("of these, have not begun within %v: they wait for the host's lease, or its visibilityTimeout", recoveryLimit)},
	}
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		results, err := b.repeat(ctx)
		if err != nil {
			return nil, err
		}
		var took []float64
		sum := result{}
		for _, r := range results {
			took = append(took, r.took.Seconds())
			sum.inHand += r.inHand
			sum.late += r.late
			sum.notBegun += r.notBegun
			sum.notBegunLate += r.notBegunLate
		}
		times := [][]float64{took}
		return []float64{percentile(times, 50), percentile(times, 99), float64(sum.inHand), float64(sum.late),
			float64(sum.notBegun), float64(sum.notBegunLate)}, nil
	}}
}
