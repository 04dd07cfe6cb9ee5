package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const (
	ofEngine   = `engine=~"$engine"`
	ofActivity = `activity=~"$activity"`
)

// engine returns the dashboard of the selected engines, including their activities.
func engine() board {
	return board{
		uid: engineUID, title: "Roundhouse: engines",
		about: "Attempts, activities, dead letters and credentials of the chosen engines.",
		variables: []cog.Builder[dashboard.VariableModel]{
			choices("engine", "Engine", `label_values(roundhouse_dead_letters{job="$job"}, engine)`),
			choices("activity", "Activity", `label_values(roundhouse_activity_attempts_total{job="$job", engine=~"$engine"}, activity)`),
		},
		rows: []row{
			{"Now", engineNow()},
			{"Attempts", engineAttempts()},
			{"Activities", activities()},
			{"Dead letters", deadLetters()},
			{"Successes and credentials", successes()},
		},
	}
}

func engineNow() []cog.Builder[dashboard.Panel] {
	const attempts = "roundhouse_engine_attempts_total"
	return panels(
		number("Attempts", about("Attempts of the chosen engines within 30 minutes that succeeded, failed, were dead-lettered or stalled.", "RoundhouseEngineFailures"),
			count, aggregated("sum", "", ours("job_engine:roundhouse_engine_attempts:increase30m", ofEngine))),
		number("Failures", about("The largest share of attempts of one of the chosen engines that failed, were dead-lettered or stalled, within 30 minutes.", "RoundhouseEngineFailures"),
			share, aggregated("max", "", ours("job_engine:roundhouse_engine_failures:ratio_rate30m", ofEngine)), limit{0.25, orange}),
		number("Succeeded", about("Runs that succeeded within the chosen time.", "RoundhouseEngineFailures"),
			count, within("$__range", attempts, "", ofEngine, `outcome="succeeded"`)),
		number("Dead letters", about("Pending dead letters of the chosen engines.", "RoundhouseDeadLettersPending"),
			count, heldInAll("roundhouse_dead_letters", "engine", ofEngine, `status="Pending"`), limit{1, orange}),
		number("Oldest dead letter", about("How long ago that one of them failed last that waits for longest. Red after a day.", "RoundhouseDeadLettersOld"),
			seconds, held("roundhouse_dead_letters_oldest_pending_age_seconds", "", ofEngine), limit{86400, red}),
		number("Expiring credentials", about("Secrets and certificates of the chosen engines that expire within 14 days, or have expired.", "RoundhouseCredentialsExpiring"),
			count, heldInAll("roundhouse_credentials_expiring", "engine", ofEngine), limit{1, orange}),
	)
}

func engineAttempts() []cog.Builder[dashboard.Panel] {
	return panels(
		outcomes("Attempts by outcome", about("Deliveries of messages in a minute, by what became of them. What failed comes again; what is dead-lettered needs a person.", "RoundhouseEngineFailures"), ofEngine),
		graph("Attempts", about("How long the handling of a delivery takes. Runs that wait are put back, so their waits are not in here.", "What decides how long it takes"),
			seconds, percentiles("roundhouse_engine_attempt_duration_seconds", ofEngine)...),
		graph("Messages, from sending to the end", about("How long it takes from when a message was sent to when its run was over, waits and earlier attempts included.", "RoundhouseQueueOld"),
			seconds, percentiles("roundhouse_engine_message_duration_seconds", ofEngine)...),
	)
}

func activities() []cog.Builder[dashboard.Panel] {
	const attempts, took = "roundhouse_activity_attempts_total", "roundhouse_activity_attempt_duration_seconds"
	return panels(
		painted(stacked(graph("Attempts by result", about("Attempts at activities in a minute. What failed is tried again as far as the retries of its call go; what failed permanently is not.", "RoundhouseEngineFailures"),
			eachMinute, line{query: perMinute(attempts, "result", ofEngine, ofActivity), legend: "{{result}}"})),
			paint{"succeeded", green}, paint{"failed", orange}, paint{"permanent", red}),
		graph("Failures by activity", about("Attempts in a minute that failed, for good or not, by activity.", "RoundhouseEngineFailures"),
			eachMinute, line{query: perMinute(attempts, "engine, operation, activity", ofEngine, ofActivity, `result!="succeeded"`) + " > 0", legend: "{{engine}} {{operation}} {{activity}}"}),
		graph("Duration, p95", about("How long an attempt takes, by activity: the ten slowest.", "RoundhouseEngineFailures"),
			seconds, line{query: "topk(10, " + quantile(0.95, took, "engine, activity", ofEngine, ofActivity) + ")", legend: "{{engine}} {{activity}}", exemplars: true}),
	)
}

func deadLetters() []cog.Builder[dashboard.Panel] {
	return panels(
		stacked(graph("Pending", about("Dead letters that wait for a decision, by engine.", "RoundhouseDeadLettersPending"),
			count, line{query: held("roundhouse_dead_letters", "engine", ofEngine, `status="Pending"`), legend: "{{engine}}"})),
		graph("By status", about("Dead letters of the chosen engines by status. Those that are resolved or expired are kept for a while, and need nobody.", "RoundhouseDeadLettersPending"),
			count, line{query: aggregated("sum", "status", held("roundhouse_dead_letters", "engine, status", ofEngine)), legend: "{{status}}"}),
		graph("Age of the oldest", about("How long ago the pending dead letter failed last that waits for longest, by engine.", "RoundhouseDeadLettersOld"),
			seconds, line{query: held("roundhouse_dead_letters_oldest_pending_age_seconds", "engine", ofEngine), legend: "{{engine}}"}),
	)
}

func successes() []cog.Builder[dashboard.Panel] {
	return panels(
		graph("Since the last success", about("How long ago a run of the engine last succeeded, in a process of the chosen time. An engine is missing whose runs have not.", "RoundhouseEngineFailures"),
			seconds, line{query: sinceLast("roundhouse_engine_last_success_timestamp_seconds", "engine", ofEngine), legend: "{{engine}}"}).Span(12),
		graph("Until the first credential expires", about("How long the secret or certificate in use is good that expires first, by engine. Below zero it has expired.", "RoundhouseCredentialsExpiring", "RoundhouseCredentialsExpired"),
			seconds, line{query: expiry(ofEngine), legend: "{{engine}}"}).Span(12),
		graph("Expired", about("Secrets and certificates in use that have expired, by engine.", "RoundhouseCredentialsExpired"),
			count, line{query: held("roundhouse_credentials_expired", "engine", ofEngine), legend: "{{engine}}"}),
		graph("Expiring", about("Secrets and certificates in use that expire within 14 days, those that have expired included, by engine.", "RoundhouseCredentialsExpiring"),
			count, line{query: held("roundhouse_credentials_expiring", "engine", ofEngine), legend: "{{engine}}"}),
		graph("Waiting for consumers", about("Keys and passwords whose older version is not retired, because a new one has not arrived at everybody, by engine.", "RoundhouseCredentialsWaiting"),
			count, line{query: held("roundhouse_credentials_waiting", "engine", ofEngine), legend: "{{engine}}"}),
	)
}
