package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/queueprobe"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// holds reports expected lines that a scrape lacks.
func holds(t *testing.T, m *Metrics, want map[string]string) {
	t.Helper()
	got := ours(t, m)
	for name := range got {
		if _, ok := want[name]; !ok {
			delete(got, name)
		}
	}
	testenv.Equal(t, "", want, got)
}

// Every fate of every engine is counted, and an unknown engine counts as other.
func TestEngines(t *testing.T) {
	t.Parallel()
	m := New()
	count := m.Engines("hmac", "tls")
	want := map[string]string{}
	for i, fate := range engine.Fates() {
		for range i + 1 {
			count(t.Context(), engine.Settled{Engine: "hmac", Fate: fate, Took: time.Second, SinceSent: time.Minute})
		}
		want[`roundhouse_engine_attempts_total{engine="hmac",outcome="`+string(fate)+`"}`] = string('1' + rune(i))
		want[`roundhouse_engine_attempts_total{engine="tls",outcome="`+string(fate)+`"}`] = "0"
	}
	count(t.Context(), engine.Settled{Engine: "x\n{}", Fate: engine.Succeeded})
	want[`roundhouse_engine_attempts_total{engine="other",outcome="succeeded"}`] = "1"
	want[`roundhouse_engine_attempt_duration_seconds_count{engine="hmac"}`] = "45"
	want[`roundhouse_engine_message_duration_seconds_count{engine="hmac"}`] = "10" // succeeded, dead-lettered and terminated
	want[`roundhouse_engine_message_duration_seconds_sum{engine="hmac"}`] = "600"
	want[`roundhouse_engine_message_duration_seconds_count{engine="other"}`] = "0" // its send time is unknown
	want[`roundhouse_engine_last_success_timestamp_seconds{engine="tls"}`] = "0"
	holds(t, m, want)
}

// The activities of an orchestration are counted for their engine, by result.
func TestActivities(t *testing.T) {
	t.Parallel()
	m := New()
	do := func(err error) func(context.Context, int) (string, error) {
		return func(context.Context, int) (string, error) { return "done", err }
	}
	good, bad := orchestrator.NewActivity("work/good", do(nil)), orchestrator.NewActivity("bad", do(errors.New("no")))
	hopeless, own := orchestrator.NewActivity("hopeless", do(orchestrator.Permanent(errors.New("no")))), orchestrator.NewActivity("own", do(nil))
	count := m.Activities([]engine.Definition{{Name: "work", Operations: []orchestrator.AnyActivity{good}, Activities: []orchestrator.AnyActivity{bad, hopeless}}})
	run := orchestrator.NewOrchestrator("run", func(ctx *orchestrator.Context, _ int) (string, error) {
		_, _ = bad.Call(ctx, 1).Await()
		_, _ = hopeless.Call(ctx, 1).Await()
		_, _ = own.Call(ctx, 1).Await()
		return good.Call(ctx, 1).Await()
	})
	runtime, err := orchestrator.New(orchestrator.Config{Tables: tables.NewMemory(), Blobs: blobs.NewMemory(), Queues: queues.NewMemory(),
		Orchestrators: []orchestrator.AnyOrchestrator{run}, Activities: []orchestrator.AnyActivity{count(good), count(bad), count(hopeless), count(own)}})
	if err == nil {
		t.Cleanup(runtime.Close)
		err = runtime.Prepare(t.Context())
	}
	testenv.OK(t, err)
	out, err := runtime.Run(t.Context(), orchestrator.Start{ID: "a", Orchestrator: "run", Input: json.RawMessage("1")})
	if err != nil || string(out.Output) != `"done"` {
		t.Fatalf("%s, %v", out.Output, err)
	}
	holds(t, m, map[string]string{
		`roundhouse_activity_attempts_total{activity="work/good",engine="work",operation="good",result="succeeded"}`: "1",
		`roundhouse_activity_attempts_total{activity="work/good",engine="work",operation="good",result="failed"}`:    "0",
		`roundhouse_activity_attempts_total{activity="bad",engine="work",operation="",result="failed"}`:              "1",
		`roundhouse_activity_attempts_total{activity="hopeless",engine="work",operation="",result="permanent"}`:      "1",
		`roundhouse_activity_attempts_total{activity="own",engine="platform",operation="",result="succeeded"}`:       "1",
		`roundhouse_activity_attempt_duration_seconds_count{activity="work/good",engine="work",operation="good"}`:    "1",
	})
}

// External values make no label.
func TestDoorsAndRequests(t *testing.T) {
	t.Parallel()
	m := New()
	door, request := m.Doors(map[string]string{"work-queue-trigger": "queue", "sweep": "timer"}), m.Requests()
	door(t.Context(), "work-queue-trigger", "done", false, time.Second)
	door(t.Context(), "work-queue-trigger", "done", true, time.Second)
	door(t.Context(), "sweep", "idle", false, time.Second)
	door(t.Context(), "made-up", "done", false, time.Second)
	request(t.Context(), http.MethodGet, "/api/dlq/:engine/:rowKey", 404, time.Second)
	request(t.Context(), "BREW", "", 405, time.Second)
	m.Ticks()(t.Context(), "orders", 2*time.Second)
	holds(t, m, map[string]string{
		`roundhouse_invocations_total{direct="false",function="work-queue-trigger",outcome="done",trigger="queue"}`: "1",
		`roundhouse_invocations_total{direct="true",function="work-queue-trigger",outcome="done",trigger="queue"}`:  "1",
		`roundhouse_invocations_total{direct="false",function="sweep",outcome="idle",trigger="timer"}`:              "1",
		`roundhouse_invocations_total{direct="false",function="other",outcome="done",trigger="other"}`:              "1",
		`roundhouse_invocation_duration_seconds_sum{function="work-queue-trigger",trigger="queue"}`:                 "2",
		`roundhouse_http_requests_total{code="404",method="GET",route="/api/dlq/:engine/:rowKey"}`:                  "1",
		`roundhouse_http_requests_total{code="405",method="other",route="other"}`:                                   "1",
		`roundhouse_http_request_duration_seconds_count{method="other",route="other"}`:                              "1",
		`roundhouse_poller_tick_duration_seconds_sum{poller="orders"}`:                                              "2",
	})
}

// A duration has the trace of its context as an exemplar when that is sampled, and none otherwise.
func TestExemplars(t *testing.T) {
	t.Parallel()
	span := func(flags trace.TraceFlags, id trace.TraceID) context.Context {
		return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}, TraceFlags: flags}))
	}
	for name, test := range map[string]struct {
		ctx  context.Context
		want bool
	}{
		"sampled": {span(trace.FlagsSampled, trace.TraceID{0xab}), true}, "not sampled": {span(0, trace.TraceID{0xab}), false},
		"without an id": {span(trace.FlagsSampled, trace.TraceID{}), false}, "no span": {t.Context(), false},
	} {
		m := New()
		m.Engines("hmac")(test.ctx, engine.Settled{Engine: "hmac", Fate: engine.Succeeded, Took: time.Millisecond, SinceSent: time.Minute})
		m.Outbox().Attempted(test.ctx, "sink", outbox.Succeeded, time.Millisecond)
		page, err := m.Scrape(t.Context(), http.Header{"Accept": {"application/openmetrics-text;version=1.0.0"}})
		testenv.OK(t, err)
		found := strings.Count(string(page.Body), `# {trace_id="ab000000000000000000000000000000"}`)
		if want := map[bool]int{true: 3}[test.want]; found != want || !test.want && strings.Contains(string(page.Body), traceLabel) {
			t.Errorf("%s: %d exemplars, want %d", name, found, want)
		}
	}
}

// The leader exports values of storage separately: a failing one does not hide others.
func TestWhatStorageKnows(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { return now }
	world := func(leads bool, broken error) *Metrics {
		m := New()
		m.Collect(lease(leads))
		m.Clock(func(context.Context) (time.Duration, error) { return -7 * time.Second, nil })
		m.DeadLetters(func(context.Context) ([]DeadLetters, error) {
			return []DeadLetters{{engine.DeadLetterCounts{Engine: "hmac", Pending: 2, Resolved: 3, Expired: 4}, now.Add(-time.Hour)}, {DeadLetterCounts: engine.DeadLetterCounts{Engine: "tls"}}}, broken
		}, clock)
		m.Queues(func(context.Context) ([]queueprobe.Head, error) {
			return []queueprobe.Head{{Queue: "q", Messages: 5, Age: time.Minute, Stuck: time.Second}}, nil
		})
		m.InstanceLocks(func(context.Context) (registry.Locks, error) {
			return registry.Locks{Held: 2, Expired: 1, LongestExpired: time.Minute}, nil
		})
		m.HostLocks(func(context.Context) ([]hostlock.Held, error) {
			return []hostlock.Held{{Job: "sweeper", AcquiredAt: now.Add(-time.Minute)}, {Job: "own/1", AcquiredAt: now.Add(-time.Hour)}, {Job: "own/2", AcquiredAt: now}}, nil
		}, []string{"sweeper", "retention"}, clock)
		m.Fleet(func(context.Context) ([]nodes.Info, error) {
			return []nodes.Info{{State: nodes.StateAlive, Version: "1", Seen: now}, {State: nodes.StateAlive, Version: "2", Seen: now}, {State: nodes.StateGone, Version: "3", Seen: now},
				{State: nodes.StateAlive, Version: "4", Seen: now.Add(-2 * time.Hour)}}, nil
		}, clock)
		m.Overdue(func(context.Context) (Overdue, error) { return Overdue{3, time.Hour}, nil })
		m.Tasks(func(context.Context) (tasks.Count, error) {
			return tasks.Count{Open: 9, Overdue: 2, LongestOverdue: time.Minute}, nil
		})
		m.Expiring(func(context.Context) (map[string][]engine.Credential, error) {
			return map[string][]engine.Credential{"tls": {{ExpiresAt: now.Add(time.Hour)}, {ExpiresAt: now.Add(-time.Hour)}, {ExpiresAt: now.Add(100 * 24 * time.Hour)}, {}}, "spn": nil}, nil
		}, clock)
		return m
	}
	want := map[string]string{
		"roundhouse_clock_skew_seconds":                                          "-7",
		`roundhouse_dead_letters{engine="hmac",status="Pending"}`:                "2",
		`roundhouse_dead_letters{engine="hmac",status="Resolved"}`:               "3",
		`roundhouse_dead_letters{engine="hmac",status="Expired"}`:                "4",
		`roundhouse_dead_letters{engine="tls",status="Pending"}`:                 "0",
		`roundhouse_dead_letters_oldest_pending_age_seconds{engine="hmac"}`:      "3600",
		`roundhouse_dead_letters_oldest_pending_age_seconds{engine="tls"}`:       "0",
		`roundhouse_queue_messages{queue="q"}`:                                   "5",
		`roundhouse_queue_oldest_message_age_seconds{queue="q"}`:                 "60",
		`roundhouse_queue_stuck_seconds{queue="q"}`:                              "1",
		"roundhouse_instance_locks_held":                                         "2",
		"roundhouse_instance_locks_expired":                                      "1",
		"roundhouse_instance_lock_oldest_expired_seconds":                        "60",
		`roundhouse_host_lock_age_seconds{job="sweeper"}`:                        "60",
		`roundhouse_host_lock_age_seconds{job="retention"}`:                      "0",
		`roundhouse_host_lock_age_seconds{job="other"}`:                          "3600",
		"roundhouse_nodes_alive":                                                 "2",
		"roundhouse_nodes_versions":                                              "2",
		"roundhouse_orchestrations_overdue":                                      "3",
		"roundhouse_orchestrations_overdue_seconds":                              "3600",
		"roundhouse_tasks_open":                                                  "9",
		"roundhouse_tasks_overdue":                                               "2",
		"roundhouse_tasks_overdue_seconds":                                       "60",
		`roundhouse_credentials_earliest_expiry_timestamp_seconds{engine="tls"}`: "1.6999964e+09",
		`roundhouse_credentials_expiring{engine="tls"}`:                          "2",
		`roundhouse_credentials_expired{engine="tls"}`:                           "1",
		`roundhouse_credentials_expired{engine="spn"}`:                           "0",
	}
	holds(t, world(true, nil), want)
	if got := ours(t, world(false, errors.New("asked"))); len(got) == 0 || got["roundhouse_tasks_open"] != "" || got["roundhouse_clock_skew_seconds"] != "-7" {
		t.Errorf("who does not lead shows %v", got)
	}
	page, err := world(true, errors.New("no line")).Scrape(t.Context(), nil)
	if text := string(page.Body); err == nil || strings.Contains(text, "roundhouse_dead_letters") || !strings.Contains(text, "roundhouse_tasks_open 9") {
		t.Errorf("%v: %s", err, text)
	}
}
