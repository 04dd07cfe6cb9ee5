package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/catalog"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const day = 24 * time.Hour

// archive is orchestrations and their retention, on storage that a plan breaks only for the retention.
type archive struct {
	*purger
	healthy *orchestrator.Runtime
	queues  *queues.Memory
}

func newArchive(t *testing.T, intercept faults.Interceptor) archive {
	t.Helper()
	store, messages, log := tables.NewMemory(), queues.NewMemory(), slog.New(slog.DiscardHandler)
	config := orchestrator.Config{Tables: store, Blobs: blobs.NewMemory(), Queues: messages, Log: log,
		Orchestrators: []orchestrator.AnyOrchestrator{
			orchestrator.NewOrchestrator("done", func(*orchestrator.Context, int) (int, error) { return 0, nil }),
			orchestrator.NewOrchestrator("naps", func(ctx *orchestrator.Context, _ int) (int, error) { return 0, ctx.Sleep(time.Hour) }),
			orchestrator.NewOrchestrator("waits", func(ctx *orchestrator.Context, _ int) (int, error) { return 0, ctx.Sleep(365 * day) })}}
	healthy, err := orchestrator.New(config)
	testenv.OK(t, err)
	config.Tables = faults.Tables(store, intercept)
	rt, err := orchestrator.New(config)
	testenv.OK(t, err)
	r := &purger{runtime: rt, locks: hostlock.Locks{Tables: store}, log: log, now: time.Now, keep: 30 * day}
	testenv.OK(t, errors.Join(healthy.Prepare(t.Context()), r.locks.CreateTable(t.Context())))
	return archive{r, healthy, messages}
}

// sweeper returns the sweeper of the archive, with a list that does not know any orchestration.
func (a archive) sweeper(t *testing.T) (sweeper, *catalog.Catalog) {
	t.Helper()
	list, err := catalog.New(catalog.Config{Tables: a.locks.Tables, Runtime: func() *orchestrator.Runtime { return a.runtime }})
	testenv.OK(t, err)
	t.Cleanup(list.Close)
	testenv.OK(t, list.Prepare(t.Context()))
	return sweeper{runtime: a.runtime, list: list, locks: a.locks, log: slog.New(slog.DiscardHandler)}, list
}

func (a archive) add(t *testing.T, name string, n int) {
	t.Helper()
	for i := range n {
		start := orchestrator.Start{ID: fmt.Sprintf("%s%04d", name, i), Orchestrator: name, Input: []byte("1")}
		testenv.Must(a.healthy.Run(t.Context(), start))(t)
	}
}

// left checks the number of orchestrations.
func (a archive) left(t *testing.T, want int) {
	t.Helper()
	found, next, err := a.healthy.List(t.Context(), orchestrator.Filter{}, 1000, "")
	if err != nil || next != "" || len(found) != want {
		t.Errorf("%d are left, want %d; %q, %v", len(found), want, next, err)
	}
}

// run runs the due jobs.
func (a archive) run(t *testing.T) {
	t.Helper()
	testenv.OK(t, a.handle(t.Context(), trigger.TimerDelivery{}))
}

func untouched(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	return next(ctx)
}

// Old ended orchestrations are deleted, in as many slices as needed; younger ones, and those that have not ended,
// stay.
func TestRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 2*purgeSlice + 1
		a := newArchive(t, untouched)
		a.add(t, "done", many)
		a.add(t, "waits", 3)
		for _, tt := range []struct {
			wait time.Duration
			want int
		}{{30 * day, many + 3}, {time.Second, 3}, {300 * day, 3}} {
			time.Sleep(tt.wait)
			testenv.OK(t, a.handle(t.Context(), trigger.TimerDelivery{IsPastDue: true}))
			a.left(t, tt.want)
		}
	})
}

func TestRetentionLeavesTheWorkToAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(t, untouched)
		a.add(t, "done", 1)
		time.Sleep(31 * day)
		testenv.Must(a.locks.Acquire(t.Context(), purgeJob, time.Minute))(t)
		for _, want := range []int{1, 0} {
			a.run(t)
			a.left(t, want)
			time.Sleep(2 * time.Minute) // the lock of the other expires
		}
	})
}

// A run that timed out has not failed. The next one continues from its place.
func TestRetentionIsOutOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 3 * purgeSlice
		scans := 0
		var stop context.CancelCauseFunc
		a := newArchive(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Operation == "Scan" {
				if scans++; stop != nil && scans == 4 { // one for unfinished purges, then one for each slice: in the third
					stop(trigger.ErrBudget)
					return ctx.Err()
				}
			}
			return next(ctx)
		})
		a.add(t, "done", many)
		time.Sleep(31 * day)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		stop = cancel
		testenv.OK(t, a.handle(ctx, trigger.TimerDelivery{}))
		a.left(t, purgeSlice)
		if next, _ := a.next.Load().(string); next == "" {
			t.Error("the place is forgotten")
		}
		before := scans
		a.run(t)
		a.left(t, 0)
		if next := a.next.Load(); next != "" || scans-before != 1 {
			t.Errorf("the place is %q, after %d scans", next, scans-before)
		}
	})
}

// The death of a run is reported, and the next one starts over and leaves nothing.
func TestRetentionInterrupted(t *testing.T) {
	t.Parallel()
	faultstest.UpTo(t, []faults.Fault{faults.CrashBefore, faults.CrashAfter}, 12, func(t *testing.T, plan *faults.Plan) {
		dying := newArchive(t, plan.Intercept)
		dying.add(t, "done", 5)
		time.Sleep(31 * day)
		if err := dying.handle(t.Context(), trigger.TimerDelivery{}); err == nil {
			t.Fatal("a run that failed reports nothing")
		}
		next := &purger{runtime: dying.healthy, locks: dying.locks, log: dying.log, now: time.Now, keep: dying.keep}
		time.Sleep(purgeLease) // in case the lock is still held
		testenv.OK(t, next.handle(t.Context(), trigger.TimerDelivery{}))
		dying.left(t, 0)
	})
}

// The retention skips unreadable orchestrations, in every slice, and counts them.
func TestRetentionPassesByDamage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newArchive(t, untouched)
		a.add(t, "done", 2*purgeSlice+1)
		for _, id := range []string{"done0000", "done0099", "done0150"} {
			lost := tables.Delete(tables.Key{Partition: id, Row: "r-00000001-00000001"}, "")
			testenv.OK(t, a.locks.Tables.Apply(t.Context(), "orchestrations", lost))
		}
		var log bytes.Buffer
		a.log = slog.New(slog.NewTextHandler(&log, nil))
		time.Sleep(31 * day)
		for range 2 {
			a.run(t)
			a.left(t, 3)
		}
		if n := strings.Count(log.String(), "damaged=3"); n != 2 {
			t.Error(log.String())
		}
		if n, err := damaged(a.runtime)(t.Context()); err != nil || n != 3 {
			t.Errorf("%d are counted, %v", n, err)
		}
	})
}

// The list is repaired although the sweep cannot read a row; its error is the run's.
func TestSweeperRepairsBesideATrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		a := newArchive(t, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Target == "orchestrationsParked" && c.Operation == "Query" {
				refused++
				return tables.ErrThrottled
			}
			return next(ctx)
		})
		a.add(t, "done", 3)
		s, list := a.sweeper(t)
		for range 2 { // the repair reads in one run, and writes in the next
			if err := s.handle(t.Context(), trigger.TimerDelivery{}); err == nil || refused == 0 {
				t.Errorf("the trouble of the sweep is not reported: %v", err)
			}
		}
		if found, _, err := list.List(t.Context(), orchestrator.Filter{}, 10, ""); err != nil || len(found) != 3 {
			t.Errorf("%d are listed, %v", len(found), err)
		}
	})
}

// Hourly jobs run every hour. Nightly jobs run once, in whichever process the timer fires, and again in the next hour
// after a failure.
func TestWhatIsDueAtNight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // it is midnight
		store, broken := tables.NewMemory(), errors.New("broken")
		locks := hostlock.Locks{Tables: store}
		testenv.OK(t, locks.CreateTable(t.Context()))
		did, fails := map[string]int{}, true
		nightly := func(job string, fails *bool) retention {
			return retention{job: job, locks: locks, log: slog.New(slog.DiscardHandler), slice: func(context.Context) (int, bool, error) {
				did[job]++
				if *fails {
					return 0, false, broken
				}
				return 1, false, nil
			}}
		}
		process := func() *retentions {
			return &retentions{tables: store, now: time.Now, nightly: []retention{nightly("bad-retention", &fails), nightly("good-retention", new(bool))},
				hourly: []trigger.TimerHandler{func(context.Context, trigger.TimerDelivery) error { did["hourly"]++; return nil }}}
		}
		for hour, want := range []string{"1 1 1 broken", "2 2 1 broken", "3 3 1", "4 4 2", "4 5 2", "4 6 2"} {
			fails = hour < 2
			err := process().handle(t.Context(), trigger.TimerDelivery{})
			testenv.Equal(t, fmt.Sprintf("hour %d", hour), want, counts(did["bad-retention"], did["hourly"], did["good-retention"], err))
			time.Sleep(time.Hour)
		}
		time.Sleep(24 * time.Hour)
		if err := process().handle(t.Context(), trigger.TimerDelivery{}); err != nil || did["bad-retention"] != 5 || did["good-retention"] != 3 {
			t.Errorf("a day later: %v, %v", did, err)
		}
	})
}

func counts(bad, hourly, good int, err error) string {
	var b strings.Builder
	for _, n := range []int{bad, hourly, good} {
		b.WriteByte(byte('0' + n))
		b.WriteByte(' ')
	}
	if err != nil {
		b.WriteString(err.Error())
	}
	return strings.TrimSpace(b.String())
}

// pages are the remaining pages of a sweep.
type pages struct {
	n    int
	fail error
	seen []string
}

func (p *pages) sweep(ctx context.Context, before time.Time, from string) (int, string, error) {
	p.seen = append(p.seen, fmt.Sprintf("%q of %v", from, time.Since(before)))
	if err := errors.Join(p.fail, ctx.Err()); err != nil {
		return 0, "", err
	}
	if p.n--; p.n == 0 {
		return 1, "", nil
	}
	return 1, fmt.Sprint(p.n), nil
}

// Page follows page, container follows container; a failure does not block the others, and a sweep that timed out
// continues.
func TestBlobSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := &pages{n: 2}, &pages{n: 2}
		b := &blobSweeps{keep: 180 * day, now: time.Now, sweeps: []blobSweep{first.sweep, second.sweep}}
		run := func(ctx context.Context) (removed int, err error) {
			for more := true; more && err == nil; {
				var n int
				n, more, err = b.slice(ctx)
				removed += n
			}
			return removed, err
		}
		if n, err := run(t.Context()); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		testenv.Equal(t, "pages", []string{`"" of 4320h0m0s`, `"1" of 4320h0m0s`}, second.seen)
		first.fail = errors.New("no entry")
		second.n = 3
		if _, err := run(t.Context()); !errors.Is(err, first.fail) {
			t.Error(err)
		}
		if n, _, err := b.slice(t.Context()); n != 1 || err != nil {
			t.Errorf("the others are held up: %d, %v", n, err)
		}
		late, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := run(late); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n, err := run(t.Context()); n != 2 || err != nil || second.seen[len(second.seen)-2] != `"2" of 4320h0m0s` {
			t.Errorf("%d, %v, %q", n, err, second.seen)
		}
	})
}

// The function finds the containers of the program: unreferenced blobs are deleted, and those of dead letters are
// kept.
func TestBlobRetentionRuns(t *testing.T) {
	t.Parallel()
	r := settings.NewReader(emulator.With(settings.Storage, storage.Account(t).ConnectionString()).Lookup)
	s, err := settings.Load(r)
	testenv.OK(t, err)
	s.BlobAge = -time.Hour // everything is old
	st, prepare, err := openPlatform(r, s, slog.New(slog.DiscardHandler))
	testenv.OK(t, err)
	a, err := workApp().assemble(s, st, prepare)
	testenv.OK(t, err)
	defer a.Close()
	testenv.OK(t, a.Preparation.Try(t.Context()))
	claims := engine.NewClaims(st.Blobs, "")
	input := json.RawMessage(`"` + strings.Repeat("x", engine.MaxMessage) + `"`)
	var bodies [][]byte
	for _, id := range []string{"blob-of-nobody", "blob-of-a-dead-letter"} {
		body, err := claims.Pack(t.Context(), engine.Message{Engine: "work", CorrelationID: id, Input: input})
		testenv.OK(t, err)
		bodies = append(bodies, body)
	}
	_, err = engine.NewDeadLetters(st.Tables, "").Add(t.Context(), engine.DeadLetter{Engine: "work", MessageID: "m1", CorrelationID: "blob-of-a-dead-letter",
		OriginalQueue: "work-queue", OriginalMessage: bodies[1], ErrorMessage: "it failed", LastFailureAtUtc: time.Now()})
	testenv.OK(t, err)
	testenv.OK(t, a.Timers[retentionTimer].Handle(t.Context(), trigger.TimerDelivery{}))
	for n, body := range bodies {
		var m engine.Message
		testenv.OK(t, json.Unmarshal(body, &m))
		if _, err := st.Blobs.Get(t.Context(), "engine-messages", m.Blob); errors.Is(err, blobs.ErrNotFound) != (n == 0) {
			t.Errorf("blob %s: %v", m.Blob, err)
		}
	}
}

// The timer wakes overdue orchestrations, late or not, and leaves the work to the process that has the lock.
func TestSweeper(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		held  bool
		woken int
	}{"alone": {held: false, woken: 1}, "another is at work": {held: true, woken: 0}} {
		testenv.Bubble(t, name, func(t *testing.T) {
			a := newArchive(t, untouched)
			s, list := a.sweeper(t)
			a.add(t, "naps", 1)
			time.Sleep(2 * time.Hour)
			if tt.held {
				testenv.Must(s.locks.Acquire(t.Context(), sweeperJob, time.Minute))(t)
			}
			for range 2 { // a woken orchestration is not woken again
				testenv.OK(t, s.handle(t.Context(), trigger.TimerDelivery{IsPastDue: true}))
			}
			if n, err := a.queues.Length(t.Context(), a.runtime.SignalQueue()); err != nil || n != tt.woken {
				t.Errorf("%d signals, %v", n, err)
			}
			// It has repaired the list, too, which did not know the orchestration.
			if all, _, err := list.List(t.Context(), orchestrator.Filter{}, 10, ""); err != nil || len(all) != tt.woken {
				t.Errorf("%+v %v", all, err)
			}
		})
	}
}
