package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const ofInstance = `instance=~"$instance"`

// runtime returns the dashboard of orchestrations, processes, locks and clocks.
func runtime() board {
	return board{
		uid: runtimeUID, title: "Roundhouse: runtime",
		about: "Orchestrations, tasks and schedules, processes and their takeovers, locks, the collector, and what the processes use.",
		variables: []cog.Builder[dashboard.VariableModel]{
			choices("instance", "Process", `label_values(roundhouse_build_info{job="$job"}, instance)`),
		},
		rows: []row{
			{"Now", runtimeNow()},
			{"Orchestrations", orchestrations()},
			{"Tasks and schedules", tasksAndSchedules()},
			{"Processes", processes()},
			{"Locks", locks()},
			{"Collector and clocks", collector()},
			{"What processes use", usage()},
		},
	}
}

func runtimeNow() []cog.Builder[dashboard.Panel] {
	return panels(
		number("Processes that work", about("Processes of the app that have worked within the last hour and have not left. An idle app has none.", "One node down", "All nodes down"),
			count, held("roundhouse_nodes_alive", "")),
		number("Versions", about("How many versions of the program these are of.", "RoundhouseVersionMix"),
			count, held("roundhouse_nodes_versions", ""), limit{2, orange}),
		number("Overdue for", about("For how long the orchestration is due that is furthest behind.", "RoundhouseOrchestrationsOverdue"),
			seconds, held("roundhouse_orchestrations_overdue_seconds", ""), limit{900, orange}),
		number("List repair", about("The age of the last pass of the repair of the list of orchestrations that is done: for so long can something be wrong in it. Orange after two days.", "RoundhouseListRepairLag", "The list of orchestrations is lost or wrong"),
			seconds, held("roundhouse_orchestrations_list_repair_lag_seconds", ""), limit{172800, orange}),
		number("Longest job", about("For how long the lock of that job has been held that is under way for longest, the collector's apart, which is held as long as its process lives.", "RoundhouseHostLockOld"),
			seconds, held("roundhouse_host_lock_age_seconds", "", `exported_job!="collector"`), limit{7200, orange}),
		number("Clock", about("By how much the clock of the process is off that is furthest from storage's. Leases and due times are off by as much.", "RoundhouseClockSkew"),
			seconds, "max (abs("+ours("roundhouse_clock_skew_seconds")+"))", limit{5, orange}),
	)
}

func orchestrations() []cog.Builder[dashboard.Panel] {
	return panels(
		graph("Stalled", about("Orchestrations whose code cannot go on until it is mended, by orchestrator.", "RoundhouseOrchestrationsStalled", "A stuck orchestration"),
			count, line{query: held("roundhouse_orchestrations_stalled", "orchestrator") + " > 0", legend: "{{orchestrator}}"}),
		graph("Retrying", about("Orchestrations of which an attempt failed and another one follows, by orchestrator.", "A stuck orchestration"),
			count, line{query: held("roundhouse_orchestrations_retrying", "orchestrator") + " > 0", legend: "{{orchestrator}}"}),
		graph("Idle", about("Runs that have neither ended nor continued for 90 days and wait for no timer.", "A stuck orchestration"),
			count, line{query: held("roundhouse_orchestrations_idle", ""), legend: "idle"}),
		graph("Overdue, and woken", about("Orchestrations that are due and that nobody has driven, and how many the sweeper wakes in a minute. Overdue ones that none wakes: nothing sweeps.", "RoundhouseOrchestrationsOverdue"),
			count, line{query: held("roundhouse_orchestrations_overdue", ""), legend: "overdue"}, line{query: perMinute("roundhouse_runtime_woken_total", ""), legend: "woken in a minute"}),
		graph("Damaged", about("Orchestrations that cannot be read, and how often a process meets one in a minute.", "RoundhouseOrchestrationsDamaged", "A damaged orchestration"),
			count, line{query: held("roundhouse_orchestrations_damaged", ""), legend: "damaged"}, line{query: perMinute("roundhouse_runtime_damaged_total", ""), legend: "met in a minute"}),
		graph("Conflicts", about("Rounds in a minute that another process committed first, by process. Nothing is lost by them; many are work that is done twice.", "One node down"),
			eachMinute, line{query: perMinute("roundhouse_runtime_conflicts_total", "instance", ofInstance), legend: "{{instance}}"}),
		graph("Signals that were dropped", about("Signals in a minute that were not needed: about something that is over (stale), or brought before (duplicate).", "A poisoned signal"),
			eachMinute, line{query: perMinute("roundhouse_runtime_signals_dropped_total", "reason"), legend: "{{reason}}"}),
	)
}

func tasksAndSchedules() []cog.Builder[dashboard.Panel] {
	return panels(
		graph("Human tasks", about("Human tasks that wait for an answer, and those whose due time has passed.", "RoundhouseTasksOverdue"),
			count, line{query: held("roundhouse_tasks_open", ""), legend: "open"}, line{query: held("roundhouse_tasks_overdue", ""), legend: "overdue"}),
		graph("Schedules", about("Items of schedules that are due and were not sent, and those of them that could not be.", "RoundhouseSchedulesOverdue", "RoundhouseSchedulesFailing"),
			count, line{query: held("roundhouse_schedules_overdue", ""), legend: "overdue"}, line{query: held("roundhouse_schedules_failing", ""), legend: "failing"}),
		graph("Furthest behind", about("By how much the task is overdue that is furthest behind, and the item of a schedule.", "RoundhouseTasksOverdue", "RoundhouseSchedulesOverdue"),
			seconds, line{query: held("roundhouse_tasks_overdue_seconds", ""), legend: "task"}, line{query: held("roundhouse_schedules_delay_seconds", ""), legend: "schedule"}),
	)
}

func processes() []cog.Builder[dashboard.Panel] {
	return panels(
		graph("Processes by version", about("Processes whose metrics there are, by version.", "RoundhouseVersionMix"),
			count, line{query: aggregated("count", "version", ours("roundhouse_build_info", ofInstance)), legend: "{{version}}"}),
		graph("Takeovers", about("Dead processes that others took over from in a minute, and orchestrations that went on elsewhere for that.", "One node down"),
			eachMinute, line{query: perMinute("roundhouse_node_takeovers_total", "", ofInstance), legend: "processes"},
			line{query: perMinute("roundhouse_node_taken_over_total", "", ofInstance), legend: "orchestrations"}),
		graph("Fenced", about("How often within an hour others took over from a process although it lived, by process: it stood still, or did not reach storage.", "RoundhouseNodeFenced"),
			count, line{query: within("1h", "roundhouse_node_fenced_total", "instance", ofInstance), legend: "{{instance}}"}),
	)
}

func locks() []cog.Builder[dashboard.Panel] {
	return panels(
		graph("Locks of instances", about("Instances whose lock a run holds, and those whose lock has expired and was not released.", "RoundhouseInstanceLocksExpired"),
			count, line{query: held("roundhouse_instance_locks_held", ""), legend: "held"}, line{query: held("roundhouse_instance_locks_expired", ""), legend: "expired"}),
		graph("Expired for", about("For how long that lock of an instance has been expired that expired first.", "RoundhouseInstanceLocksExpired"),
			seconds, line{query: held("roundhouse_instance_lock_oldest_expired_seconds", ""), legend: "oldest"}),
		graph("Jobs under way", about("For how long the lock of a job that one process does for all has been held, 0 when it is free. The collector's is held as long as its process lives.", "RoundhouseHostLockOld"),
			seconds, line{query: held("roundhouse_host_lock_age_seconds", "exported_job"), legend: "{{exported_job}}"}),
	)
}

func collector() []cog.Builder[dashboard.Panel] {
	return panels(
		graph("Who shows what storage holds", about("The process with the collector's lease. With none, gauges of what storage holds are missing.", "RoundhouseNoCollectorLeader"),
			count, line{query: aggregated("max", "instance", ours("roundhouse_collector_leader")) + " > 0", legend: "{{instance}}"}),
		graph("Looks that failed", about("Scrapes in a minute for which storage could not be asked: some gauges are missing.", "RoundhouseCollectorFailures"),
			eachMinute, line{query: perMinute("roundhouse_collector_failures_total", "instance", ofInstance), legend: "{{instance}}"}),
		graph("Clocks", about("By how much the clock of storage is ahead of that of a process, 0 within a second.", "RoundhouseClockSkew"),
			seconds, line{query: aggregated("max", "instance", ours("roundhouse_clock_skew_seconds", ofInstance)), legend: "{{instance}}"}),
	)
}

// usage returns the panels of the metrics of the Go runtime and the process. The quantile label is 1 in the text
// format and 1.0 in the OpenMetrics format.
func usage() []cog.Builder[dashboard.Panel] {
	each := func(metric string) string { return aggregated("max", "instance", ours(metric, ofInstance)) }
	return panels(
		graph("Processor", about("Cores that a process uses.", "RoundhouseQueueOld"),
			cores, line{query: perSecond("process_cpu_seconds_total", "instance", ofInstance), legend: "{{instance}}"}),
		graph("Memory", about("Memory that a process holds, and the part of it that live objects of Go are.", "One node down"),
			size, line{query: each("process_resident_memory_bytes"), legend: "{{instance}}: resident"}, line{query: each("go_memstats_heap_alloc_bytes"), legend: "{{instance}}: heap"}),
		graph("Goroutines", about("Goroutines of a process. A number that only grows is a leak.", "One node down"),
			count, line{query: each("go_goroutines"), legend: "{{instance}}"}),
		graph("Pauses", about("The longest pause for the collection of garbage that a process has had lately. Long ones look like a process that stands still.", "RoundhouseNodeFenced"),
			seconds, line{query: aggregated("max", "instance", ours("go_gc_duration_seconds", ofInstance, `quantile=~"1(.0)?"`)), legend: "{{instance}}"}),
		graph("Open files", about("The share of the files that a process may open which are open, connections included.", "Storage down and back"),
			share, line{query: each("process_open_fds") + " / " + each("process_max_fds"), legend: "{{instance}}"}),
		graph("Age", about("For how long a process has lived. A line that falls to zero again and again is a process that dies.", "One node down"),
			seconds, line{query: "time() - " + each("process_start_time_seconds"), legend: "{{instance}}"}),
	)
}
