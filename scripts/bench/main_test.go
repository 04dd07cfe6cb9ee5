package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Other tools use the names: they may be added, but not changed.
func TestNames(t *testing.T) {
	t.Parallel()
	want := []string{
		"tx/sequence/1", "tx/sequence/3", "tx/sequence/5", "tx/sequence/100", "tx/local/5", "tx/fanout/100", "tx/fanout/1000", "tx/timer/cold", "tx/event/cold", "tx/child", "tx/child/timer", "tx/duplicate",
		"tx/list/100", "tx/list/100000", "list/instance/100", "list/instance/100000",
		"price/sequence/3", "price/sequence/3/durable_functions", "price/sequence/3/ratio", "price/sequence/5", "price/sequence/5/durable_functions", "price/sequence/5/ratio",
		"price/fanout/100", "price/fanout/100/durable_functions", "price/fanout/100/ratio", "price/fanout/1000", "price/fanout/1000/durable_functions", "price/fanout/1000/ratio",
		"price/timer", "price/timer/durable_functions", "price/timer/ratio", "price/event", "price/event/durable_functions", "price/event/ratio",
		"memory/sequence3/orchestrations_per_s/1", "memory/sequence3/orchestrations_per_s/10", "memory/sequence3/orchestrations_per_s/100",
		"memory/fanout/100/activities_per_s", "memory/fanout/1000/activities_per_s",
		"memory/hello/latency_us/p50", "memory/hello/latency_us/p99",
		"memory/sequence/100/us_per_activity", "memory/sequence/1000/us_per_activity", "memory/sequence/10000/us_per_activity",
		"peers/sequence3/1/ours", "peers/sequence3/1/best", "peers/sequence3/1/ratio",
		"peers/sequence3/10/ours", "peers/sequence3/10/best", "peers/sequence3/10/ratio",
		"peers/sequence3/100/ours", "peers/sequence3/100/best", "peers/sequence3/100/ratio",
		"peers/fanout/100/ours", "peers/fanout/100/best", "peers/fanout/100/ratio",
		"peers/fanout/1000/ours", "peers/fanout/1000/best", "peers/fanout/1000/ratio",
		"peers/hello/p50/ours", "peers/hello/p50/best", "peers/hello/p50/ratio",
		"peers/hello/p99/ours", "peers/hello/p99/best", "peers/hello/p99/ratio",
		"peers/sequence/1000/ours", "peers/sequence/1000/best", "peers/sequence/1000/ratio",
		"peers/sequence/10000/ours", "peers/sequence/10000/best", "peers/sequence/10000/ratio",
		"peers/replay/sequence/ours", "peers/replay/sequence/best", "peers/replay/sequence/ratio",
		"peers/replay/fanout/ours", "peers/replay/fanout/best", "peers/replay/fanout/ratio",
		"memory/sequence3/encryption_on/ratio", "memory/sequence3/encryption_off/ratio",
		"tracing/off/ratio", "tracing/sampled/ratio", "tracing/tx",
		"memory/replay/10000/ms", "events/10000/us_per_event", "events/parked/2000/ms", "events/parked/2000/elsewhere_ms", "memory/parked/bytes", "memory/list/ratio",
		"azurite/sequence3/orchestrations_per_s", "azurite/raw/transactions_per_s", "azurite/ratio", "azurite/list/ratio",
		"start/requests", "start/sequence", "idle/host/polls", "idle/host/leases", "idle/handler", "idle/requests",
		"direct/start/p50_ms", "direct/start/p99_ms", "direct/event/p50_ms", "direct/event/p99_ms", "direct/command/p50_ms", "direct/command/p99_ms", "direct/timer/p50_ms", "direct/timer/p99_ms",
		"outbox/tx_per_message", "outbox/azurite/messages_per_s", "outbox/memory/messages_per_s", "outbox/add_to_delivered_ms/p50", "outbox/add_to_delivered_ms/p99",
		"requests/outbox/lone",
		"task/complete_tx", "task/wake_tx", "task/list/10000/ratio",
		"storage/eternal/1000/rows", "storage/eternal/1000/blobs",
		"console/first_page/kB", "console/list/100000/ratio", "console/polling/tx_per_s",
		"poller/tx_per_batch", "poller/idle_tx_per_hour", "poller/postgres/rows_per_s", "poller/lag_ms/p99",
	}
	var linear []string
	for _, shape := range []string{"fanout", "sequence", "buffered", "coroutines", "delivered"} {
		for _, kind := range []string{"run", "replay"} {
			for _, size := range []string{"500", "5000", "50000", "ratio"} {
				linear = append(linear, "linear/"+kind+"/"+shape+"/"+size)
			}
		}
	}
	want = append(want, linear...)
	for _, broken := range []string{"host_killed", "handler_killed", "clean_end", "storage_gone", "storage_gone/hosts_end", "all_killed"} {
		for _, figure := range []string{"p50_s", "p99_s", "in_hand", "late", "not_begun", "not_begun_late"} {
			want = append(want, "recovery/"+broken+"/"+figure)
		}
	}
	want = append(want, "recovery/thousand/taken_over_s", "recovery/thousand/s", "recovery/thousand/in_hand", "recovery/thousand/taken_over", "recovery/thousand/late", "recovery/requests/idle", "recovery/requests/busy")
	run := []string{"orchestrations/get", "orchestrations/query", "orchestrations/apply", "history/query", "history/apply", "queue/receive", "queue/delete"}
	outbox, slots := []string{"outbox/get", "outbox/query", "outbox/apply", "outbox/wake"}, []string{"keySlots/query", "keySlots/apply"}
	registry, signals := []string{"registry/get", "registry/apply"}, []string{"signals/send", "signals/delete"}
	started := slices.Concat([]string{"audit/apply", "orchestrationsParked/apply"}, signals, run)
	for name, lines := range map[string][]string{
		"hmac": slices.Concat(outbox, slots, run), "plain": slices.Concat(outbox, slots, run), "spn": slices.Concat(outbox, run),
		"tls": slices.Concat([]string{"tlsOrders/get", "tlsOrders/apply"}, run), "tls-look": slices.Concat([]string{"tlsOrders/get"}, run),
		"provisioning": slices.Concat(registry, outbox, signals, run), "update": slices.Concat(registry, outbox, run),
		"updatepublisher": slices.Concat([]string{"registry/query"}, registry, outbox, run), "alerts": slices.Concat(outbox, run), "health": slices.Concat(registry, outbox, run),
		"api/start": started, "api/raise": started, "api/terminate": started, "api/durable-start": started, "api/durable-raise": started, "api/durable-terminate": started,
		"api/status": {"orchestrations/get", "orchestrations/query"}, "api/durable-status": {"orchestrations/get", "orchestrations/query"},
		"api/orchestrations": {"orchestrationsList/query", "orchestrations/get"}, "api/durable-list": {"orchestrationsList/query", "orchestrations/get", "orchestrations/query"},
		"api/history": {"history/query"}, "api/dlq": {"dlq/query"}, "api/tasks": {"orchestrationTasks/query"},
		"api/retry": slices.Concat([]string{"dlq/get", "dlq/query", "dlq/apply", "queue/send"}, started), "api/complete": slices.Concat([]string{"orchestrationTasks/get", "orchestrationTasks/apply"}, started),
		"api/timeline": {"dlq/query", "history/query", "orchestrations/get", "orchestrations/query", "orchestrations/scan"},
	} {
		for _, line := range append(lines, "rest", "vault", "total") {
			want = append(want, "requests/"+name+"/"+line)
		}
	}
	for _, way := range []string{"tx", "direct/tx"} {
		for _, line := range []string{"", "/put", "/get", "/query", "/commit", "/delete"} {
			want = append(want, "events/parked/2000/"+way+line)
		}
	}
	got := make(map[string]int)
	for _, s := range scenarios() {
		for _, m := range s.metrics {
			got[m.name]++
		}
	}
	for _, name := range want {
		if got[name] == 0 {
			t.Errorf("%s is not measured", name)
		}
	}
	for name, times := range got {
		if times > 1 {
			t.Errorf("%s is measured %d times", name, times)
		}
	}
}

func TestSelected(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]int{
		"": len(scenarios()), "tx/": 13, "tx/list": 1, "tx/sequence/1": 2, "memory/hello": 1, "memory/hello/latency_us/p99": 1,
		"peers/fanout": 2, "peers/hello/p99": 1, "peers/parked": 0, "azurite/ratio": 1, "azurite/": 2, "outbox": 4, "outbox/add_to_delivered_ms/p99": 1, "task": 2, "storage/eternal/1000": 1, "events": 2, "linear/run": 5, "price": 6, "price/event/ratio": 1, "linear/replay/buffered": 1, "poller/": 3, "poller/postgres": 1, "recovery/": 8, "recovery/storage_gone": 2, "sequence": 0, "tx/sequence/1/": 0,
	} {
		if got := len(selected(scenarios(), prefix)); got != want {
			t.Errorf("%q: %d scenarios, want %d", prefix, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := command([]string{"--json", "--time", "1ms", "--only", "memory/fanout/"}, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	var names []string
	for line := range strings.Lines(stdout.String()) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		name, _ := f["name"].(string)
		value, _ := f["value"].(float64)
		unit, _ := f["unit"].(string)
		if len(f) != 3 || value <= 0 || unit == "" {
			t.Errorf("line %q", line)
		}
		names = append(names, name)
	}
	want := []string{
		"memory/fanout/100/activities_per_s", "memory/fanout/1000/activities_per_s",
	}
	testenv.Equal(t, "names", want, names)
}

func TestTable(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := command([]string{"-only", "tx/fanout/100"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "tx/fanout/100 ") || !strings.HasSuffix(lines[0], " transactions       budget 12") ||
		!strings.HasPrefix(lines[1], "tx/fanout/1000 ") || !strings.HasSuffix(lines[1], "budget 60") {
		t.Errorf("table:\n%s", &stdout)
	}
}

// Only the requested figures are shown, although p50 and p99 come from one measurement.
func TestOnlyOneOfAScenario(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := command([]string{"--json", "--time", "1ms", "--only", "memory/hello/latency_us/p99"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if got := stdout.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, `{"name":"memory/hello/latency_us/p99","value":`) {
		t.Errorf("output %q", got)
	}
}

// The storage cost of pollers is exact.
func TestPollerCost(t *testing.T) {
	t.Parallel()
	values := testenv.Must(pollerCost().measure(t.Context(), 0))(t)
	testenv.Equal(t, "tx_per_batch and idle_tx_per_hour", []float64{1, 364}, values)
}

// A measurement with PostgreSQL returns a value for each name.
func TestPollersWithPostgres(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for _, s := range []scenario{pollerThroughput(), pollerLag()} {
		t.Run(s.metrics[0].name, func(t *testing.T) {
			t.Parallel()
			figures, err := s.figures(t.Context(), time.Millisecond)
			if err != nil || len(figures) != 1 || figures[0].Value <= 0 {
				t.Errorf("%+v, %v", figures, err)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"help":            {[]string{"-help"}, 0, "-only PREFIX"},
		"unknown flag":    {[]string{"--xml"}, 2, "-xml"},
		"argument":        {[]string{"memory/"}, 2, `unexpected argument "memory/"`},
		"no time":         {[]string{"--time", "0s"}, 2, "more than 0"},
		"nothing to show": {[]string{"--only", "memory/sequence2"}, 2, "no figure has a name that begins so"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if code := command(tt.args, &stdout, &stderr); code != tt.code || !strings.Contains(stderr.String(), tt.says) || stdout.Len() > 0 {
				t.Errorf("exit code %d, output %q, errors %q", code, &stdout, &stderr)
			}
		})
	}
	if o, err := parse([]string{"--json", "--only", "tx/", "--time", "3s"}, &bytes.Buffer{}); err != nil || o != (options{json: true, only: "tx/", time: 3 * time.Second}) {
		t.Errorf("options %+v, %v", o, err)
	}
}

func TestRounded(t *testing.T) {
	t.Parallel()
	for in, want := range map[float64]float64{0: 0, 12345.678: 12346, 1234.5: 1235, 123.456: 123.5, 1.23456: 1.235, 0.0123456: 0.01235, -1.23456: -1.235} {
		if got := rounded(in); got != want {
			t.Errorf("%v: %v, want %v", in, got, want)
		}
	}
}
