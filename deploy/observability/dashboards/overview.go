package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// firing selects the alerts of deploy/observability/prometheus from Prometheus' own series of alerts.
const firing = `alertname=~"Roundhouse.+"`

// overview returns the dashboard for an operator who has just received an alert: the items that wait for an operator,
// the items that do not progress, and the state of the work.
func overview() board {
	return board{
		uid: overviewUID, title: "Roundhouse: overview",
		about: "What waits for a person, what does not go on, and rate, errors and duration of engines, functions and routes.",
		rows: []row{
			{"Alerts", panels(alerts())},
			{"Work that waits for a person", waiting()},
			{"Work that is late", late()},
			{"Credentials and processes", equipment()},
			{"Engines", engines()},
			{"Functions", functions()},
			{"HTTP API", routes()},
			{"Queues", queues()},
		},
	}
}

// panels returns its arguments, for builder methods that take a slice.
func panels(all ...cog.Builder[dashboard.Panel]) []cog.Builder[dashboard.Panel] { return all }

// alerts returns the table of firing alerts, the critical ones first.
func alerts() cog.Builder[dashboard.Panel] {
	query := "time() - " + ours("ALERTS_FOR_STATE", firing, `severity=~"critical|warning"`) +
		" and ignoring (alertstate) " + ours("ALERTS", firing, `alertstate="firing"`)
	p := rows("Alerts that fire", about("The alerts of Roundhouse that Prometheus fires, and for how long their cause has lasted. Nothing here means that none does, "+
		"or that the rules are not loaded.", "When an alert fires"),
		map[string]string{"alertname": "Alert", "severity": "Severity", "engine": "Engine", "orchestrator": "Orchestrator", "queue": "Queue", "poller": "Poller", "destination": "Destination", "status": "Status",
			"exported_job": "Job of the app", "instance": "Process"},
		[]string{"job"}, column{title: "For", unit: seconds, query: query})
	return p.Height(6).NoValue("No alert fires").SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName("Severity")}).
		OverrideByName("Alert", []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{
			{"title": "What to do", "url": recovery + "#when-an-alert-fires", "targetBlank": true}}}})
}

func waiting() []cog.Builder[dashboard.Panel] {
	return panels(
		number("Dead letters", about("Dead letters that are pending, of all engines: each waits for a decision.", "RoundhouseDeadLettersPending"),
			count, heldInAll("roundhouse_dead_letters", "engine", `status="Pending"`), limit{1, orange}).Links(links(to(engineUID, "By engine"))),
		number("Oldest dead letter", about("How long ago the pending dead letter failed last that waits for longest. Red after a day.", "RoundhouseDeadLettersOld"),
			seconds, held("roundhouse_dead_letters_oldest_pending_age_seconds", ""), limit{86400, red}).Links(links(to(engineUID, "By engine"))),
		number("Dead events", about("Events that the outbox has given up. They are delivered when somebody retries them.", "RoundhouseOutboxDead"),
			count, held("roundhouse_outbox_dead", ""), limit{1, orange}).Links(links(to(outboxUID, "Outbox"))),
		number("Events without configuration", about("Events that wait for a route, a signing key or the like. They leave by themselves when it is there.", "RoundhouseOutboxMisconfigured"),
			count, held("roundhouse_outbox_misconfigured", ""), limit{1, orange}).Links(links(to(outboxUID, "Outbox"))),
		number("Stalled runs", about("Orchestrations whose code cannot go on until it is mended.", "RoundhouseOrchestrationsStalled"),
			count, heldInAll("roundhouse_orchestrations_stalled", "orchestrator"), limit{1, orange}).Links(links(to(runtimeUID, "By orchestrator"))),
		number("Damaged runs", about("Orchestrations that cannot be read. Nobody can go on with them.", "RoundhouseOrchestrationsDamaged", "A damaged orchestration"),
			count, held("roundhouse_orchestrations_damaged", ""), limit{1, red}).Links(links(to(runtimeUID, "Runtime"))),
	)
}

func late() []cog.Builder[dashboard.Panel] {
	return panels(
		number("Overdue runs", about("Orchestrations that are due and that nobody has driven. For some minutes that is nothing; for more, nothing sweeps.", "RoundhouseOrchestrationsOverdue"),
			count, held("roundhouse_orchestrations_overdue", ""), limit{1, orange}).Links(links(to(runtimeUID, "Runtime"))),
		number("Stuck queue", about("For how long the same message has been the next of its queue, in the queue where that is longest: nobody receives it. Red after 10 minutes.", "RoundhouseQueueStuck"),
			seconds, held("roundhouse_queue_stuck_seconds", ""), limit{600, red}),
		number("Oldest queue message", about("Age of the oldest message that is next in its queue. That of timers is left out, which are as old as they are long.", "RoundhouseQueueOld"),
			seconds, held("roundhouse_queue_oldest_message_age_seconds", "", `queue!="orchestration-schedule"`), limit{1800, orange}),
		number("Oldest event", about("Age of the oldest event that is not delivered.", "RoundhouseOutboxOld", "RoundhouseOutboxStalled"),
			seconds, held("roundhouse_outbox_oldest_pending_age_seconds", ""), limit{300, orange}).Links(links(to(outboxUID, "Outbox"))),
		number("Overdue tasks", about("Human tasks whose due time has passed.", "RoundhouseTasksOverdue"),
			count, held("roundhouse_tasks_overdue", ""), limit{1, orange}).Links(links(to(runtimeUID, "Runtime"))),
		number("Overdue schedules", about("Items of schedules that are due and were not sent.", "RoundhouseSchedulesOverdue", "RoundhouseSchedulesFailing"),
			count, held("roundhouse_schedules_overdue", ""), limit{1, orange}).Links(links(to(runtimeUID, "Runtime"))),
	)
}

func equipment() []cog.Builder[dashboard.Panel] {
	return panels(
		number("Expired credentials", about("Secrets and certificates in use that have expired.", "RoundhouseCredentialsExpired"),
			count, heldInAll("roundhouse_credentials_expired", "engine"), limit{1, red}).Links(links(to(engineUID, "By engine"))),
		number("Expiring credentials", about("Secrets and certificates in use that expire within 14 days, or have expired. Rotations come earlier than that.", "RoundhouseCredentialsExpiring"),
			count, heldInAll("roundhouse_credentials_expiring", "engine"), limit{1, orange}).Links(links(to(engineUID, "By engine"))),
		number("Processes that work", about("Processes of the app that have worked within the last hour and have not left. An idle app has none.", "One node down", "All nodes down"),
			count, held("roundhouse_nodes_alive", "")).Links(links(to(runtimeUID, "Runtime"))),
		number("Versions", about("How many versions of the program these are of. More than one is a deployment, or a process that was forgotten.", "RoundhouseVersionMix"),
			count, held("roundhouse_nodes_versions", ""), limit{2, orange}).Links(links(to(runtimeUID, "Runtime"))),
		needed(number("Processes that answer", about("Processes that Prometheus has scraped. No data where metrics are sent, and none are fetched.", "RoundhouseTargetAbsent"),
			count, aggregated("sum", "", ours("up")))),
		needed(number("Processes that collect", about("How many processes show what storage holds: one. Without one, what waits and what is late has no data.", "RoundhouseNoCollectorLeader", "RoundhouseCollectorFailures"),
			count, aggregated("sum", "", ours("roundhouse_collector_leader")))).Links(links(to(runtimeUID, "Runtime"))),
	)
}

func engines() []cog.Builder[dashboard.Panel] {
	const failed = "job_engine:roundhouse_engine_failures:ratio_rate30m"
	return panels(
		outcomes("Attempts", about("Deliveries of messages of engines in a minute, by what became of them. What failed comes again; what is dead-lettered needs a person.", "RoundhouseEngineFailures")),
		graph("Failures", about("The share of attempts that failed, were dead-lettered or stalled, within 30 minutes. The alert fires from 25 percent on, of at least 20 attempts.", "RoundhouseEngineFailures"),
			share, line{query: aggregated("max", "engine", ours(failed)), legend: "{{engine}}"}).Max(1).DataLinks(links(toEngine())),
		graph("Messages, from sending to the end", about("How long it took from when a message was sent to when its run was over, waits and earlier attempts included.", "RoundhouseQueueOld"),
			seconds, percentiles("roundhouse_engine_message_duration_seconds")...),
		engineTable(),
	)
}

// toEngine returns a link from a series or a row of an engine to the engine's dashboard.
func toEngine() cog.Builder[dashboard.DashboardLink] {
	return dashboard.NewDashboardLinkBuilder("Engine").Type(dashboard.DashboardLinkTypeLink).
		Url("/d/" + engineUID + "?var-engine=${__field.labels.engine}&${job:queryparam}&${datasource:queryparam}&${__url_time_range}")
}

// engineTable returns a table with one row for each engine.
func engineTable() cog.Builder[dashboard.Panel] {
	return rows("Engines", about("Each engine, within the chosen time. An engine whose last success is not known has had none in a process of that time.", "RoundhouseEngineFailures", "RoundhouseDeadLettersPending"),
		map[string]string{"engine": "Engine"}, nil,
		column{title: "Attempts", unit: count, query: within("$__range", "roundhouse_engine_attempts_total", "engine")},
		column{title: "Succeeded", unit: count, query: within("$__range", "roundhouse_engine_attempts_total", "engine", `outcome="succeeded"`)},
		column{title: "Failed", unit: count, query: within("$__range", "roundhouse_engine_attempts_total", "engine", `outcome=~"failed|dead-lettered|stalled"`), limits: []limit{{1, orange}}},
		column{title: "Last success", unit: seconds, query: sinceLast("roundhouse_engine_last_success_timestamp_seconds", "engine")},
		column{title: "Dead letters", unit: count, query: held("roundhouse_dead_letters", "engine", `status="Pending"`), limits: []limit{{1, orange}}},
		column{title: "First credential expires in", unit: seconds, query: expiry(), limits: nil},
	).OverrideByName("Engine", []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{
		{"title": "Engine", "url": "/d/" + engineUID + "?var-engine=${__value.raw}&${job:queryparam}&${datasource:queryparam}&${__url_time_range}"}}}})
}

// expiry returns the time until the first credential of each engine expires.
func expiry(matchers ...string) string {
	return held("roundhouse_credentials_earliest_expiry_timestamp_seconds", "engine", matchers...) + " - time()"
}

// outcomes returns a graph of attempts by outcome.
func outcomes(title, description string, matchers ...string) *timeseries.PanelBuilder {
	return painted(stacked(graph(title, description, eachMinute,
		line{query: perMinute("roundhouse_engine_attempts_total", "outcome", matchers...), legend: "{{outcome}}"})),
		paint{"succeeded", green}, paint{"failed", orange}, paint{"dead-lettered", red}, paint{"stalled", purple}, paint{"terminated", yellow},
		paint{"parked", blue}, paint{"duplicate", grey}, paint{"elsewhere", grey}, paint{"conflicting", grey})
}

func functions() []cog.Builder[dashboard.Panel] {
	return panels(
		painted(stacked(graph("Invocations", about("Invocations of queue and timer functions in a minute, by how they ended. What is put back or not ready comes again without having used up an attempt.", "Storage down and back"),
			eachMinute, line{query: perMinute("roundhouse_invocations_total", "outcome"), legend: "{{outcome}}"})),
			paint{"done", green}, paint{"idle", grey}, paint{"put back", blue}, paint{"not ready", yellow}, paint{"retry", orange}, paint{"panicked", red}, paint{"overran", purple}),
		graph("Invocations that failed", about("Invocations in a minute that ended in a retry, a panic or out of time, by function. A retry is delivered again by the host.", "A poisoned signal", "Storage down and back"),
			eachMinute, line{query: perMinute("roundhouse_invocations_total", "function", `outcome=~"retry|panicked|overran"`) + " > 0", legend: "{{function}}"}),
		graph("Duration, p95", about("How long invocations take, with the wait until the program is ready, by function: the ten slowest.", "Storage down and back"),
			seconds, line{query: "topk(10, " + quantile(0.95, "roundhouse_invocation_duration_seconds", "function") + ")", legend: "{{function}}", exemplars: true}),
		graph("Invocations by trigger", about("Invocations in a minute: of timers, of messages that the host brought, and of those that the process has sent itself (direct).", "What decides how long it takes"),
			eachMinute, line{query: perMinute("roundhouse_invocations_total", "trigger, direct"), legend: "{{trigger}}, direct {{direct}}"}).Span(24).Height(6),
	)
}

func routes() []cog.Builder[dashboard.Panel] {
	const all = "roundhouse_http_requests_total"
	return panels(
		stacked(graph("Requests", about("Requests of HTTP functions in a second, by the code of the answer.", "Storage down and back"),
			requests, line{query: perSecond(all, "code"), legend: "{{code}}"})),
		graph("Errors", about("The share of requests that were answered with 500 or more, by route. 503 is storage that does not answer, or a start that goes on.", "Storage down and back", "A start without storage"),
			share, line{query: perSecond(all, "route", `code=~"5.."`) + " / " + perSecond(all, "route"), legend: "{{route}}"}).Max(1),
		graph("Refused callers", about("Requests in a minute that were answered with 429 because of the storage transactions of their callers, and audit entries of refusals that were skipped.", "Slow storage"),
			eachMinute, line{query: perMinute("roundhouse_quota_refusals_total", "caller"), legend: "{{caller}}"},
			line{query: perMinute("roundhouse_audit_refusals_skipped_total", ""), legend: "skipped audit entries"}),
		graph("Duration, p95", about("How long answers take, by route: the ten slowest.", "Storage down and back"),
			seconds, line{query: "topk(10, " + quantile(0.95, "roundhouse_http_request_duration_seconds", "method, route") + ")", legend: "{{method}} {{route}}", exemplars: true}),
	)
}

func queues() []cog.Builder[dashboard.Panel] {
	return panels(
		graph("Messages", about("Messages of each queue, about: those that are being worked on or are due later included.", "RoundhouseQueueOld"),
			count, line{query: held("roundhouse_queue_messages", "queue"), legend: "{{queue}}"}),
		graph("Age of the next message", about("How old the message is that is next to be received, its delay included. That of orchestration-schedule is as old as timers are long.", "RoundhouseQueueOld"),
			seconds, line{query: held("roundhouse_queue_oldest_message_age_seconds", "queue"), legend: "{{queue}}"}),
		graph("Stuck", about("For how long the same message has been seen as the next of its queue: nobody receives it.", "RoundhouseQueueStuck"),
			seconds, line{query: held("roundhouse_queue_stuck_seconds", "queue"), legend: "{{queue}}"}),
	)
}
