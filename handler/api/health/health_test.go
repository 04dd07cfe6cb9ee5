package health

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/handler/queueprobe"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is checks over stores in memory.
type world struct {
	plan     *faults.Plan
	snapshot outbox.Snapshot
	err      error
	log      bytes.Buffer
	config   Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{plan: &faults.Plan{}}
	table, queue := tables.NewMemory(), queues.NewMemory()
	testenv.OK(t, errors.Join(table.CreateTable(t.Context(), "outbox"), queue.CreateQueue(t.Context(), "wake")))
	w.config = Config{
		Tables: faults.Tables(table, w.plan.Intercept), Table: "outbox", Queues: faults.Queues(queue, w.plan.Intercept), Queue: "wake",
		Outbox:  func(context.Context) (outbox.Snapshot, error) { return w.snapshot, w.err },
		Stalled: func(context.Context) (catalog.StatusCount, error) { return catalog.StatusCount{}, w.err },
		Log:     slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	return w
}

func (w *world) checks(t *testing.T) *Checks {
	t.Helper()
	c, err := New(w.config)
	testenv.OK(t, err)
	return c
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	never := Thresholds{Backlog: Limit[int]{-1, -1}, OldestAge: Limit[time.Duration]{-1, -1}, FailureRatio: Limit[float64]{-1, -1}, Dead: Limit[int]{-1, -1}}
	for name, test := range map[string]struct {
		thresholds Thresholds
		snapshot   outbox.Snapshot
		check      string
		want       Status
	}{
		"nothing":            {Thresholds{}, outbox.Snapshot{}, "outbox:backlog", Pass},
		"backlog below":      {Thresholds{}, outbox.Snapshot{BacklogSize: 9_999}, "outbox:backlog", Pass},
		"backlog":            {Thresholds{}, outbox.Snapshot{BacklogSize: 10_000}, "outbox:backlog", Warn},
		"backlog far":        {Thresholds{}, outbox.Snapshot{BacklogSize: 100_000}, "outbox:backlog", Fail},
		"own backlog":        {Thresholds{Backlog: Limit[int]{1, 2}}, outbox.Snapshot{BacklogSize: 2}, "outbox:backlog", Fail},
		"age below":          {Thresholds{}, outbox.Snapshot{OldestAgeSeconds: 299.9}, "outbox:oldestAge", Pass},
		"age":                {Thresholds{}, outbox.Snapshot{OldestAgeSeconds: 300}, "outbox:oldestAge", Warn},
		"age far":            {Thresholds{}, outbox.Snapshot{OldestAgeSeconds: 3600}, "outbox:oldestAge", Fail},
		"ratio of few":       {Thresholds{}, outbox.Snapshot{FailureRatio: 1, FailedPending: 9}, "outbox:failureRatio", Pass},
		"ratio":              {Thresholds{}, outbox.Snapshot{FailureRatio: .25, FailedPending: 10}, "outbox:failureRatio", Warn},
		"ratio far":          {Thresholds{}, outbox.Snapshot{FailureRatio: .9, FailedPending: 10}, "outbox:failureRatio", Fail},
		"ratio of one":       {Thresholds{MinFailedPending: 1}, outbox.Snapshot{FailureRatio: 1, FailedPending: 1}, "outbox:failureRatio", Fail},
		"ratio of the dead":  {Thresholds{Dead: Limit[int]{-1, -1}}, outbox.Snapshot{FailureRatio: 1, Dead: 14, Died: 14}, "outbox:failureRatio", Fail},
		"dead":               {Thresholds{}, outbox.Snapshot{Dead: 1}, "outbox:dead", Warn},
		"dead far":           {Thresholds{Dead: Limit[int]{1, 14}}, outbox.Snapshot{Dead: 14}, "outbox:dead", Fail},
		"never by the dead":  {never, outbox.Snapshot{Dead: 1 << 30}, "outbox:dead", Pass},
		"misconfigured":      {Thresholds{}, outbox.Snapshot{Misconfigured: 1, Misconfigurations: []string{"no route"}}, "outbox:configuration", Fail},
		"never by backlog":   {never, outbox.Snapshot{BacklogSize: 1 << 30}, "outbox:backlog", Pass},
		"never by age":       {never, outbox.Snapshot{OldestAgeSeconds: 1 << 30}, "outbox:oldestAge", Pass},
		"never by the ratio": {never, outbox.Snapshot{FailureRatio: 1, FailedPending: 100}, "outbox:failureRatio", Pass},
	} {
		w := newWorld(t)
		w.snapshot, w.config.Thresholds = test.snapshot, test.thresholds
		r := w.checks(t).Full(t.Context())
		m := r.Checks[test.check]
		if len(m) != 1 || m[0].Status != test.want || r.Status != test.want || (m[0].Output == "") != (test.want == Pass) || m[0].Time.IsZero() {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestWhatIsNotReachable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.err = errors.New("AccountKey=c2VjcmV0")
	w.plan.Refuse = func(c faults.Call) bool { return c.Service == "tables" }
	c := w.checks(t)
	full, ready := c.Full(t.Context()), c.Ready(t.Context())
	if full.Status != Fail || ready.Status != Fail || c.Live().Status != Pass {
		t.Errorf("%+v, %+v", full, ready)
	}
	if m := full.Checks["outbox:backlog"][0]; m.Status != Fail || strings.Contains(m.Output, "c2VjcmV0") || m.Output == "" {
		t.Errorf("%+v", m)
	}
	if m := ready.Checks["tables:responseTime"][0]; m.Output != "Too busy." {
		t.Errorf("%+v", m)
	}
	if m := ready.Checks["queues:responseTime"][0]; m.Status != Pass {
		t.Errorf("%+v", m)
	}
	if log := w.log.String(); !strings.Contains(log, "check=outbox:backlog") || strings.Contains(log, "c2VjcmV0") {
		t.Errorf("log %s", log)
	}
	missing := newWorld(t)
	missing.config.Table = "another"
	if m := missing.checks(t).Ready(t.Context()).Checks["tables:responseTime"][0]; m.Status != Fail || m.Output != "Not created yet." {
		t.Errorf("missing table: %+v", m)
	}
}

// A hanging check costs its own timeout, and not the others' results.
func TestChecksEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.plan.At, w.plan.Fault = 1, faults.Slow
		w.config.Outbox = func(ctx context.Context) (outbox.Snapshot, error) {
			<-ctx.Done()
			return outbox.Snapshot{}, ctx.Err()
		}
		began := time.Now()
		r := w.checks(t).Full(t.Context())
		if took := time.Since(began); took != DefaultTimeout || r.Status != Fail {
			t.Errorf("%v: %+v", took, r)
		}
		late := 0
		for _, m := range r.Checks {
			if m[0].Output == "No answer in time." {
				late++
			}
		}
		if late != 2 || len(r.Checks) != 4 {
			t.Errorf("%d late: %+v", late, r)
		}
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		<-time.After(DefaultMaxAge)
		if r := w.checks(t).Full(hurried); r.Checks["checks:wait"][0].Status != Fail {
			t.Errorf("%+v", r)
		}
		w.plan.Wait()
		synctest.Wait()
		<-time.After(2 * DefaultTimeout)
	})
}

// For any number of callers, storage is called once in MaxAge.
func TestProbesShareTheirAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Unix(1000, 0)
	w.config.Now = func() time.Time { return now }
	c := w.checks(t)
	for range 100 {
		c.Ready(t.Context())
		c.Full(t.Context())
	}
	testenv.Equal(t, "calls", 2, len(w.plan.Calls()))
	now = now.Add(DefaultMaxAge)
	c.Ready(t.Context())
	testenv.Equal(t, "calls after MaxAge", 4, len(w.plan.Calls()))
}

func TestAPanicIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Outbox = func(context.Context) (outbox.Snapshot, error) { panic("boom") }
	if m := w.checks(t).Full(t.Context()).Checks["outbox:backlog"][0]; m.Status != Fail || strings.Contains(m.Output, "boom") {
		t.Errorf("%+v", m)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"no tables":          func(c *Config) { c.Tables = nil },
		"no table":           func(c *Config) { c.Table = "" },
		"no queues":          func(c *Config) { c.Queues = nil },
		"no queue":           func(c *Config) { c.Queue = "" },
		"no outbox":          func(c *Config) { c.Outbox = nil },
		"negative time":      func(c *Config) { c.Timeout = -1 },
		"negative age":       func(c *Config) { c.MaxAge = -1 },
		"order":              func(c *Config) { c.Thresholds.Backlog = Limit[int]{2, 1} },
		"order by half":      func(c *Config) { c.Thresholds.OldestAge.Unhealthy = time.Minute },
		"ratio above one":    func(c *Config) { c.Thresholds.FailureRatio.Unhealthy = 2 },
		"ratio of no number": func(c *Config) { c.Thresholds.FailureRatio.Degraded = math.NaN() },
		"stalled order":      func(c *Config) { c.Thresholds.Stalled = Limit[int]{5, 2} },
		"stalled beyond":     func(c *Config) { c.Thresholds.Stalled = Limit[int]{1, 1001} },
		"negative volume":    func(c *Config) { c.Thresholds.MinFailedPending = -1 },
	} {
		w := newWorld(t)
		change(&w.config)
		if _, err := New(w.config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for status, want := range map[Status]string{Pass: "Healthy", Warn: "Degraded", Fail: "Unhealthy"} {
		if got := status.Word(); got != want {
			t.Errorf("%s: %s", status, got)
		}
	}
}

// Each service of the program has its own check, and is healthy again when it answers. Without the vault, the program
// is ready: only secrets are unavailable.
func TestEachServiceByItself(t *testing.T) {
	t.Parallel()
	broken := errors.New("no line")
	for _, part := range []string{"tables", "queues", "blobs", "vault"} {
		now, down := time.Unix(1000, 0), true
		w := newWorld(t)
		fail := func(ctx context.Context, c faults.Call, do func(context.Context) error) error {
			if down && c.Service == part {
				return broken
			}
			return do(ctx)
		}
		w.config.Now = func() time.Time { return now }
		w.config.Thresholds.ClockSkew = Limit[time.Duration]{-1, -1}
		w.config.Tables, w.config.Queues = faults.Tables(w.config.Tables, fail), faults.Queues(w.config.Queues, fail)
		w.config.Blobs, w.config.Container = faults.Blobs(blobs.NewMemory(), fail), "payloads"
		w.config.Vault = func(ctx context.Context) error {
			return fail(ctx, faults.Call{Service: "vault"}, func(context.Context) error { return nil })
		}
		checks := w.checks(t)
		for _, want := range []Status{Fail, Pass} {
			r := checks.Full(t.Context())
			for name, m := range r.Checks {
				if of := want; m[0].Status != of && (name == part+":responseTime" || m[0].Status != Pass) {
					t.Errorf("%s, want %s: %s is %+v", part, want, name, m)
				}
			}
			ready := want
			if part == "vault" {
				ready = Pass
			}
			if got := checks.Ready(t.Context()).Status; r.Status != want || got != ready {
				t.Errorf("%s: %s, want %s; ready: %s", part, r.Status, want, got)
			}
			down, now = false, now.Add(time.Minute)
		}
	}
}

// datedStore answers with a date of its own.
type datedStore struct {
	tables.Store
	date func() time.Time
	took time.Duration
}

func (s *datedStore) Query(ctx context.Context, table string, q tables.Query) (tables.Page, error) {
	time.Sleep(s.took / 2)
	if at := s.date(); !at.IsZero() {
		tables.RecordResponse(ctx, at, "")
	}
	time.Sleep(s.took / 2)
	return tables.Page{}, nil
}

// A clock difference to storage is reported until it is fixed; whole seconds and a slow answer are no difference.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ahead, took time.Duration
		undated     bool
		limits      Limit[time.Duration]
		want        Status
		skewed      bool
	}{
		"the same":          {want: Pass},
		"a little":          {ahead: 4 * time.Second, want: Pass, skewed: true},
		"ahead":             {ahead: 10 * time.Second, want: Warn, skewed: true},
		"behind":            {ahead: -10 * time.Second, want: Warn, skewed: true},
		"a slow answer":     {took: 2 * time.Second, want: Pass},
		"own limit":         {ahead: 10 * time.Second, limits: Limit[time.Duration]{time.Second, 5 * time.Second}, want: Fail, skewed: true},
		"without any limit": {ahead: time.Hour, limits: Limit[time.Duration]{-1, -1}, want: Pass, skewed: true},
		"no date":           {undated: true, ahead: time.Hour, want: Pass},
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			time.Sleep(900 * time.Millisecond) // a date has whole seconds
			w := newWorld(t)
			store := &datedStore{w.config.Tables, func() time.Time { return time.Now().Add(test.ahead) }, test.took}
			if test.undated {
				store.date = func() time.Time { return time.Time{} }
			}
			w.config.Tables, w.config.Thresholds.ClockSkew = store, test.limits
			checks := w.checks(t)
			r := checks.Full(t.Context())
			if got := r.Checks[clockCheck]; test.undated != (len(got) == 0) || !test.undated && (got[0].Status != test.want || (got[0].ObservedValue != 0.0) != test.skewed || (got[0].Output == "") != (test.want == Pass)) {
				t.Errorf("%+v", got)
			}
			if ready := checks.Ready(t.Context()); ready.Status != test.want {
				t.Errorf("ready: %+v", ready)
			}
			store.date = time.Now
			time.Sleep(time.Minute)
			if r := checks.Full(t.Context()); r.Status != Pass || r.Checks[clockCheck][0].ObservedValue != 0.0 {
				t.Errorf("when the clock is set: %+v", r)
			}
		})
	}
	w := newWorld(t)
	if _, err := ClockSkew(t.Context(), w.config.Tables, "missing", nil); err == nil || !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("a table that is missing: %v", err)
	}
}

// Messages that no host receives are reported, first as a warning and then as a failure, until a host receives them.
// A slow receiver of old messages is not reported.
func TestQueuesThatNobodyListensTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, store := newWorld(t), queues.NewMemory()
		w.config.Now = time.Now
		testenv.OK(t, errors.Join(store.CreateQueue(t.Context(), "work"), store.CreateQueue(t.Context(), "busy")))
		w.config.Heads = (&queueprobe.Heads{Queues: store, Names: []string{"busy", "work"}}).Look
		checks := w.checks(t)
		for range 100 {
			testenv.Must(store.Send(t.Context(), "busy", []byte("x"), 0))(t)
		}
		take := func(queue string) {
			t.Helper()
			got, err := store.Receive(t.Context(), queue, 1, time.Hour)
			if err != nil || len(got) != 1 {
				t.Fatalf("%v, %v", got, err)
			}
			testenv.OK(t, store.Delete(t.Context(), queue, got[0].ID, got[0].PopReceipt))
		}
		look := func(want Status) {
			t.Helper()
			r := checks.Full(t.Context())
			m := r.Checks[stuckCheck][0]
			if m.Status != want || r.Status != want || strings.Contains(m.Output, "work (1 messages") != (want != Pass) || strings.Contains(m.Output, "busy") {
				t.Errorf("want %s: %+v", want, m)
			}
			take("busy")
			time.Sleep(time.Minute)
		}
		look(Pass)
		testenv.Must(store.Send(t.Context(), "work", []byte("x"), 0))(t)
		for minute := range 25 {
			switch {
			case minute < 10:
				look(Pass)
			case minute < 20:
				look(Warn)
			default:
				look(Fail)
			}
		}
		take("work")
		look(Pass)
	})
}

// A queue store that does not answer is a failure.
func TestQueuesThatCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Heads = func(context.Context) ([]queueprobe.Head, error) { return nil, errors.New("no line") }
	if r := w.checks(t).Full(t.Context()); r.Status != Fail || r.Checks[stuckCheck][0].Status != Fail {
		t.Errorf("%+v", r)
	}
}
