package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const (
	ofDestination = `destination=~"$destination"`
	ofPoller      = `poller=~"$poller"`
)

// outboxAndPollers returns the dashboard of the outbox and the pollers.
func outboxAndPollers() board {
	return board{
		uid: outboxUID, title: "Roundhouse: outbox and pollers",
		about: "Events from their creation to their delivery, by destination, and rows that pollers fetch.",
		variables: []cog.Builder[dashboard.VariableModel]{
			choices("destination", "Destination", `label_values(roundhouse_outbox_dispatched_total{job="$job"}, destination)`),
			choices("poller", "Poller", `label_values(roundhouse_poller_ticks_total{job="$job"}, poller)`),
		},
		rows: []row{
			{"Outbox, now", outboxNow()},
			{"Outbox, over time", outboxOverTime()},
			{"Deliveries", deliveries()},
			{"Pollers, now", pollersNow()},
			{"Pollers, over time", pollersOverTime()},
		},
	}
}

func outboxNow() []cog.Builder[dashboard.Panel] {
	return panels(
		number("Pending", about("Events that are not delivered yet. Dead ones are not among them.", "RoundhouseOutboxStalled"),
			count, held("roundhouse_outbox_pending", "")),
		number("Oldest", about("Age of the oldest event that is not delivered yet.", "RoundhouseOutboxOld"),
			seconds, held("roundhouse_outbox_oldest_pending_age_seconds", ""), limit{300, orange}),
		number("Overdue", about("For how long that event has been due, and nobody has tried to deliver it, that is furthest behind.", "RoundhouseOutboxStalled"),
			seconds, held("roundhouse_outbox_overdue_seconds", ""), limit{300, orange}),
		number("Failed before", about("Events that are not delivered yet and have failed before; they are tried again.", "RoundhouseOutboxOld"),
			count, held("roundhouse_outbox_failed_pending", ""), limit{1, yellow}),
		number("Without configuration", about("Events that wait for a route, a signing key or the like.", "RoundhouseOutboxMisconfigured"),
			count, held("roundhouse_outbox_misconfigured", ""), limit{1, orange}),
		number("Of these, reported", about("Those of them that have a pending dead letter. The others are told of soon, or have waited for a moment only.", "RoundhouseOutboxMisconfigured"),
			count, held("roundhouse_outbox_misconfigured_reported", ""), limit{1, orange}),
		number("Dead", about("Events that were given up; each has a pending dead letter.", "RoundhouseOutboxDead"),
			count, held("roundhouse_outbox_dead", ""), limit{1, orange}),
		number("Failures within 15 minutes", about("The share of attempts that failed or were refused, at the chosen destination that is worst. An alert looks at it from 20 attempts on.", "RoundhouseOutboxFailures"),
			share, aggregated("max", "", ours("job_destination:roundhouse_outbox_failures:ratio_rate15m", ofDestination)), limit{0.25, orange}),
		number("Attempts within 15 minutes", about("The attempts that these are of, at the chosen destinations.", "RoundhouseOutboxFailures"),
			count, aggregated("sum", "", ours("job_destination:roundhouse_outbox_attempts:increase15m", ofDestination))),
	)
}

func outboxOverTime() []cog.Builder[dashboard.Panel] {
	return panels(
		graph("Added and settled", about("Events in a minute that were added, and that came to their end, by status. Where more are added than settled for long, the backlog grows.", "RoundhouseOutboxStalled"),
			eachMinute, line{query: perMinute("roundhouse_outbox_added_total", ""), legend: "added"},
			line{query: perMinute("roundhouse_outbox_settled_total", "status"), legend: "{{status}}"}),
		graph("Backlog", about("Events that are not delivered yet, those of them that have failed, and those that wait for configuration.", "RoundhouseOutboxStalled", "RoundhouseOutboxMisconfigured"),
			count, line{query: held("roundhouse_outbox_pending", ""), legend: "pending"}, line{query: held("roundhouse_outbox_failed_pending", ""), legend: "failed before"},
			line{query: held("roundhouse_outbox_misconfigured", ""), legend: "without configuration"}, line{query: held("roundhouse_outbox_dead", ""), legend: "dead"}),
		graph("From creation to delivery", about("How long it takes from an event's creation to its delivery, retries included.", "RoundhouseOutboxOld"),
			seconds, percentiles("roundhouse_outbox_delivery_latency_seconds")...),
	)
}

func deliveries() []cog.Builder[dashboard.Panel] {
	const dispatched = "roundhouse_outbox_dispatched_total"
	return panels(
		painted(stacked(graph("Attempts by result", about("Attempts at delivery in a minute, at the chosen destinations. Failed ones are tried again, refused ones are dead.", "RoundhouseOutboxOld", "RoundhouseOutboxDead"),
			eachMinute, line{query: perMinute(dispatched, "result", ofDestination), legend: "{{result}}"})),
			paint{"succeeded", green}, paint{"failed", orange}, paint{"refused", red}, paint{"unrouted", purple}, paint{"misconfigured", purple}),
		graph("Failures by destination", about("The share of attempts that did not succeed, by destination.", "RoundhouseOutboxFailures"),
			share, line{query: perSecond(dispatched, "destination", ofDestination, `result!="succeeded"`) + " / " + perSecond(dispatched, "destination", ofDestination), legend: "{{destination}}"}).Max(1),
		graph("Duration of an attempt", about("How long an attempt takes at the chosen destinations.", "RoundhouseOutboxOld"),
			seconds, percentiles("roundhouse_outbox_dispatch_duration_seconds", ofDestination)...),
		graph("Held back", about("Processes that hold deliveries to a destination back, because it failed again and again.", "RoundhouseOutboxCircuitOpen"),
			count, line{query: aggregated("sum", "destination", ours("roundhouse_outbox_circuit_open", ofDestination)), legend: "{{destination}}"}),
		graph("Events in a claimed batch", about("How many events a process takes at once. Many in each batch is a backlog, or a burst.", "RoundhouseOutboxStalled"),
			count, line{query: quantile(0.5, "roundhouse_outbox_claim_batch_size", ""), legend: "p50", exemplars: false},
			line{query: quantile(0.95, "roundhouse_outbox_claim_batch_size", ""), legend: "p95", exemplars: false}),
		graph("Twice", about("Events in a minute that were added again under their key, with another payload (a mistake of their producer), and deliveries whose claim was lost: they may happen twice.", "One node down"),
			eachMinute, line{query: perMinute("roundhouse_outbox_duplicates_total", ""), legend: "added again"},
			line{query: perMinute("roundhouse_outbox_key_conflicts_total", ""), legend: "with another payload"},
			line{query: perMinute("roundhouse_outbox_claims_lost_total", ""), legend: "claim lost"}),
	)
}

func pollersNow() []cog.Builder[dashboard.Panel] {
	const succeeded = "roundhouse_poller_last_success_timestamp_seconds"
	return panels(
		rows("Pollers", about("Each poller, within the chosen time. The lag is that of the process that committed last; it stands still when the poller does, so look at the last success, too.", "RoundhousePollerStuck", "RoundhousePollerQuarantine", "RoundhousePollerLeasesLost"),
			map[string]string{"poller": "Poller"}, nil,
			column{title: "Last success", unit: seconds, query: sinceLast(succeeded, "poller", ofPoller), limits: []limit{{3600, orange}}},
			column{title: "Lag", unit: seconds, query: ofLatest("roundhouse_poller_lag_seconds", ofPoller)},
			column{title: "Next batch", unit: count, query: ofLatest("roundhouse_poller_batch_size", ofPoller)},
			column{title: "Rows", unit: count, query: within("$__range", "roundhouse_poller_rows_total", "poller", ofPoller)},
			column{title: "Failures", unit: count, query: within("$__range", "roundhouse_poller_failures_total", "poller", ofPoller), limits: []limit{{1, orange}}},
			column{title: "Quarantined", unit: count, query: within("$__range", "roundhouse_poller_quarantined_total", "poller", ofPoller), limits: []limit{{1, orange}}},
			column{title: "Leases lost", unit: count, query: within("$__range", "roundhouse_poller_leases_lost_total", "poller", ofPoller), limits: []limit{{1, yellow}}},
		),
	)
}

func pollersOverTime() []cog.Builder[dashboard.Panel] {
	return panels(
		graph("Rows", about("Rows in a second that were delivered and committed, by poller.", "RoundhousePollerStuck"),
			eachSecond, line{query: perSecond("roundhouse_poller_rows_total", "poller", ofPoller), legend: "{{poller}}"}),
		graph("Lag", about("Age of the last row when it was committed, 0 when there are no more, in the process that committed last. It stands still when the poller does.", "RoundhousePollerLag"),
			seconds, line{query: ofLatest("roundhouse_poller_lag_seconds", ofPoller), legend: "{{poller}}"}),
		graph("Ticks and batches", about("Runs of the poller's timer in a minute, those that left the work to another process included, and batches that were committed.", "RoundhousePollerStuck"),
			eachMinute, line{query: perMinute("roundhouse_poller_ticks_total", "poller", ofPoller), legend: "{{poller}}: ticks"},
			line{query: perMinute("roundhouse_poller_batches_total", "poller", ofPoller), legend: "{{poller}}: batches"}),
		graph("Failures", about("Runs in a minute that ended with an error, by poller. The log and the state of the poller have the last one.", "RoundhousePollerStuck"),
			eachMinute, line{query: perMinute("roundhouse_poller_failures_total", "poller", ofPoller), legend: "{{poller}}"}),
		graph("Duration of a tick, p95", about("How long a run of the poller's timer takes, one that left the work to another process included.", "RoundhousePollerLeasesLost"),
			seconds, line{query: quantile(0.95, "roundhouse_poller_tick_duration_seconds", "poller", ofPoller), legend: "{{poller}}", exemplars: true}),
		graph("Given up, or twice", about("Rows in a minute that went to the dead letters, or that may come twice because it is not known whether they are committed, and leases that were lost at work.", "RoundhousePollerQuarantine", "RoundhousePollerLeasesLost"),
			eachMinute, line{query: perMinute("roundhouse_poller_quarantined_total", "poller", ofPoller), legend: "{{poller}}: quarantined"},
			line{query: perMinute("roundhouse_poller_unconfirmed_total", "poller", ofPoller), legend: "{{poller}}: unconfirmed"},
			line{query: perMinute("roundhouse_poller_leases_lost_total", "poller", ofPoller), legend: "{{poller}}: leases lost"}),
	)
}
