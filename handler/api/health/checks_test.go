package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/handler/queueprobe"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
)

var errNoLine = errors.New("no line: AccountKey=c2VjcmV0")

// result is the expected result of a check.
type result struct {
	set    func(c *Config)
	want   Status
	value  any      // observed value; nil for any
	says   []string // in the output
	silent string   // not in the output
}

// hold runs the full report and compares the result of one check. Every check has an output if and only if it does
// not pass, and none shows the error of its request.
func (tt result) hold(t *testing.T, name, check string, w *world) {
	t.Helper()
	r := w.checks(t).Full(t.Context())
	m := r.Checks[check][0]
	if m.Status != tt.want || r.Status != tt.want || (m.Output == "") != (tt.want == Pass) || tt.value != nil && m.ObservedValue != tt.value ||
		tt.silent != "" && strings.Contains(m.Output, tt.silent) || strings.Contains(m.Output, "c2VjcmV0") {
		t.Errorf("%s, %s: %s, %+v", check, name, r.Status, m)
	}
	for _, text := range tt.says {
		if !strings.Contains(m.Output, text) {
			t.Errorf("%s, %s: no %q in %q", check, name, text, m.Output)
		}
	}
}

// Each check of the program passes, warns or fails by its measurement and its limits; without a measurement it is
// left out.
func TestChecks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	drained := func(f drain.Flag, err error) func(*Config) {
		return func(c *Config) {
			c.Now, c.Drained = time.Now, func(context.Context) (drain.Flag, error) { return f, err }
		}
	}
	instances := func(some bool, err error) func(*Config) {
		return func(c *Config) { c.Instances = func(context.Context) (bool, error) { return some, err } }
	}
	listLag := func(lag time.Duration, err error, limit ...time.Duration) func(*Config) {
		return func(c *Config) {
			c.ListLag = func(context.Context) (time.Duration, error) { return lag, err }
			c.Thresholds.ListLag = limits(limit)
		}
	}
	schedules := func(late schedule.Lateness, err error, limit ...time.Duration) func(*Config) {
		return func(c *Config) {
			c.Schedules = func(context.Context) (schedule.Lateness, error) { return late, err }
			c.Thresholds.ScheduleDelay = limits(limit)
		}
	}
	hour := schedule.Lateness{Late: 3, Failing: 1, Longest: time.Hour, Items: []string{"hmac/schedule payments"}}
	overdue := []string{"3 are overdue, of which 1 could not be sent: hmac/schedule payments."}
	stalled := func(tally catalog.StatusCount, err error, limit Limit[int]) func(*Config) {
		return func(c *Config) {
			c.Stalled = func(context.Context) (catalog.StatusCount, error) { return tally, err }
			c.Thresholds.Stalled = limit
		}
	}
	of := func(counts map[string]int) catalog.StatusCount { return catalog.StatusCount{ByOrchestrator: counts} }
	many := catalog.StatusCount{ByOrchestrator: map[string]int{}, More: true}
	for i := range 30 {
		many.ByOrchestrator[fmt.Sprintf("o%02d", i)] = 1
	}
	damaged := func(n int, err error) func(*Config) {
		return func(c *Config) { c.Damaged = func(context.Context) (int, error) { return n, err } }
	}
	unusable := func(found ...string) func(*Config) {
		return func(c *Config) { c.Unusable = func() []string { return found } }
	}
	idle := func(t catalog.StatusCount, err error) func(*Config) {
		return func(c *Config) { c.Idle = func(context.Context) (catalog.StatusCount, error) { return t, err } }
	}
	for check, results := range map[string]map[string]result{
		drainedCheck: {
			"never":     {set: drained(drain.Flag{}, nil), want: Pass},
			"now":       {set: drained(drain.Flag{ID: "1", Until: now.Add(time.Hour)}, nil), want: Warn},
			"over":      {set: drained(drain.Flag{ID: "1", Until: now.Add(-time.Second)}, nil), want: Pass},
			"ended":     {set: drained(drain.Flag{Until: now.Add(time.Hour)}, nil), want: Pass},
			"no answer": {set: drained(drain.Flag{}, errNoLine), want: Fail},
		},
		instancesCheck: {
			"some":      {set: instances(true, nil), want: Pass},
			"none":      {set: instances(false, nil), want: Warn},
			"no answer": {set: instances(false, errNoLine), want: Fail},
		},
		// A late repair of the list makes nothing unhealthy by itself.
		listLagCheck: {
			"an hour":   {set: listLag(time.Hour, nil), want: Pass},
			"two days":  {set: listLag(48*time.Hour, nil), want: Warn},
			"a year":    {set: listLag(365*24*time.Hour, nil), want: Warn},
			"own limit": {set: listLag(time.Hour, nil, time.Minute, time.Hour), want: Fail},
			"no answer": {set: listLag(0, errNoLine), want: Fail},
		},
		schedulesCheck: {
			"none":         {set: schedules(schedule.Lateness{}, nil), want: Pass},
			"some minutes": {set: schedules(schedule.Lateness{Late: 1, Longest: 9 * time.Minute}, nil), want: Pass},
			"an hour":      {set: schedules(hour, nil), want: Warn, says: overdue},
			"own limit":    {set: schedules(hour, nil, time.Minute, time.Hour), want: Fail, says: overdue},
			"no answer":    {set: schedules(schedule.Lateness{}, errNoLine), want: Fail},
		},
		// The first orchestration whose code cannot continue is reported, with its orchestrator.
		stalledCheck: {
			"none":      {set: stalled(of(nil), nil, Limit[int]{}), want: Pass, value: 0},
			"one":       {stalled(of(map[string]int{"hmac": 1}), nil, Limit[int]{}), Warn, 1, []string{"1 of hmac", "docs/failures.md"}, "more"},
			"many":      {stalled(many, nil, Limit[int]{}), Warn, many.Total(), []string{"1 of o00, ", "others, and more"}, "o10"},
			"below":     {set: stalled(of(map[string]int{"hmac": 1}), nil, Limit[int]{2, 3}), want: Pass, value: 1},
			"unhealthy": {stalled(of(map[string]int{"hmac": 2, "tls": 1}), nil, Limit[int]{2, 3}), Fail, 3, []string{"2 of hmac, 1 of tls", "limit is 3"}, "more"},
			"never":     {set: stalled(many, nil, Limit[int]{-1, -1}), want: Pass, value: many.Total()},
			"no answer": {set: stalled(of(nil), errNoLine, Limit[int]{}), want: Fail},
		},
		idleCheck: {
			"none":      {set: idle(of(nil), nil), want: Pass, value: 0},
			"one":       {idle(of(map[string]int{"hmac": 1}), nil), Warn, 1, []string{"1 of hmac", "docs/retention.md"}, "more"},
			"many":      {idle(many, nil), Warn, many.Total(), []string{"others, and more"}, "o10"},
			"no answer": {set: idle(of(nil), errNoLine), want: Fail},
		},
		unusableCheck: {
			"none": {set: unusable(), want: Pass, value: 0},
			"two":  {unusable("ROUNDHOUSE_A: why", "ROUNDHOUSE_B: why not"), Warn, 2, []string{"ROUNDHOUSE_A: why; ROUNDHOUSE_B: why not"}, "more"},
		},
		damagedCheck: {
			"none":      {set: damaged(0, nil), want: Pass, value: 0},
			"one":       {set: damaged(1, nil), want: Warn, value: 1, says: []string{"docs/recovery.md"}},
			"many":      {set: damaged(1000, nil), want: Warn, value: 1000, says: []string{"docs/recovery.md"}},
			"no answer": {set: damaged(0, errNoLine), want: Fail},
		},
	} {
		for name, tt := range results {
			w := newWorld(t)
			tt.set(&w.config)
			tt.hold(t, name, check, w)
		}
		w := newWorld(t)
		w.config.Stalled = nil
		if m, ok := w.checks(t).Full(t.Context()).Checks[check]; ok {
			t.Errorf("%s without a measurement: %+v", check, m)
		}
	}
}

func limits(l []time.Duration) (limit Limit[time.Duration]) {
	if len(l) > 0 {
		limit = Limit[time.Duration]{l[0], l[1]}
	}
	return limit
}

// Processes of an older version that continue to work are reported; those of an update in progress, or over, are not.
func TestVersions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	node := func(version string, began, seen time.Duration, state nodes.State) nodes.Info {
		return nodes.Info{Version: version, Since: now.Add(-began), Seen: now.Add(-seen), State: state}
	}
	const day = 24 * time.Hour
	newer, older := node("v2", 3*time.Hour, time.Minute, nodes.StateAlive), node("v1", 9*day, 0, nodes.StateAlive)
	own := []time.Duration{time.Minute, time.Hour}
	set := func(err error, limit []time.Duration, all ...nodes.Info) func(*Config) {
		return func(c *Config) {
			c.Now, c.Thresholds.VersionMix = func() time.Time { return now }, limits(limit)
			c.Nodes = func(context.Context) ([]nodes.Info, error) { return all, err }
		}
	}
	for name, tt := range map[string]result{
		"none":              {set: set(nil, nil), want: Pass, value: 0},
		"one":               {set: set(nil, nil, newer), want: Pass, value: 1},
		"one, several":      {set: set(nil, nil, newer, node("v2", day, 0, nodes.StateAlive)), want: Pass, value: 1},
		"an old one":        {set(nil, nil, newer, node("v1", 9*day, time.Minute, nodes.StateAlive)), Warn, 2, []string{"v1"}, "v2"},
		"without a version": {set(nil, nil, newer, node("", 9*day, time.Minute, nodes.StateAlive)), Warn, 2, []string{"(unknown)"}, "v2"},
		"an update":         {set: set(nil, nil, node("v2", 50*time.Minute, 0, nodes.StateAlive), older), want: Pass, value: 2},
		"it has left":       {set: set(nil, nil, newer, node("v1", 9*day, time.Minute, nodes.StateGone)), want: Pass, value: 1},
		"it was killed":     {set: set(nil, nil, newer, node("v1", 9*day, 150*time.Minute, nodes.StateAlive)), want: Pass, value: 1},
		"own limits":        {set(nil, own, newer, older), Fail, 2, []string{"v1"}, "v2"},
		"no answer":         {set: set(errNoLine, nil), want: Fail},
	} {
		w := newWorld(t)
		tt.set(&w.config)
		tt.hold(t, name, versionsCheck, w)
	}
}

// A queue without a listener is a failure, and the output contains the remedy.
func TestListening(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	hour := now.Add(-time.Hour)
	deaf := []string{"orchestration-signals", "2026-11-21T11:00:00Z", "extension bundle", "disabled", "drained"}
	for name, tt := range map[string]struct {
		up    time.Duration
		state queueprobe.State
		err   error
		want  Status
		value any
		says  []string
	}{
		"heard":         {time.Hour, queueprobe.State{HeardAt: now.Add(-90 * time.Second), LookedAt: hour, SentAt: hour}, nil, Pass, 90.0, nil},
		"new":           {0, queueprobe.State{}, nil, Pass, nil, nil},
		"under way":     {time.Hour, queueprobe.State{SentAt: now, LookedAt: now, Missing: 1}, nil, Pass, nil, nil},
		"deaf":          {0, queueprobe.State{Queue: "orchestration-signals", SentAt: hour, LookedAt: now, Missing: 2}, nil, Fail, nil, deaf},
		"nobody looks":  {time.Hour, queueprobe.State{SentAt: hour, LookedAt: hour, HeardAt: hour}, nil, Warn, 3600.0, []string{"orchestration-sweep-timer"}},
		"not known yet": {time.Hour, queueprobe.State{}, errNoLine, Fail, nil, []string{"the log has the reason"}},
	} {
		w := newWorld(t)
		clock := now.Add(-tt.up)
		w.config.Now = func() time.Time { return clock }
		w.config.Listening = func(context.Context) (queueprobe.State, error) { return tt.state, tt.err }
		checks := w.checks(t)
		clock = now
		m := checks.Full(t.Context()).Checks[listeningCheck][0]
		if m.Status != tt.want || m.ObservedValue != tt.value || (m.Output == "") != (tt.says == nil) {
			t.Errorf("%s: %+v", name, m)
		}
		for _, want := range tt.says {
			if !strings.Contains(m.Output, want) {
				t.Errorf("%s: %q is not in %q", name, want, m.Output)
			}
		}
	}
}

// Before storage is prepared, the checks make no request, and the report is public.
func TestUnprepared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	missing := errors.New("account x is away")
	w.config.Prepared = func() error { return missing }
	checks := w.checks(t)
	for name, r := range map[string]Report{"ready": checks.Ready(t.Context()), "full": checks.Full(t.Context())} {
		if r.Status != Fail || !strings.HasPrefix(r.Output, "Storage is not prepared yet.") || strings.Contains(r.Output, "account x") || len(r.Checks) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	missing = nil
	if r := checks.Ready(t.Context()); r.Status == Fail || r.Output != "" {
		t.Errorf("%+v", r)
	}
}
