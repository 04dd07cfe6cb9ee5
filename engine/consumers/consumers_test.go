package consumers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const target = "/größe #1?"

// world is storage with an outbox, whose receiver can be down, and a clock.
type world struct {
	tables *tables.Memory
	outbox *enginetest.Outbox
	now    time.Time
	events int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{tables: tables.NewMemory(), now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
	w.outbox = enginetest.NewOutbox(t, w.tables, func() time.Time { return w.now })
	w.outbox.Permanent = true
	if err := w.tables.CreateTable(t.Context(), consumers.Table); err != nil {
		t.Fatal(err)
	}
	return w
}

// announce publishes the event of a version and tries to deliver it.
func (w *world) announce(t testing.TB, version string) consumers.Version {
	t.Helper()
	w.events++
	added, err := outbox.NewWriter(w.outbox.Over(w.tables)).Add(t.Context(), outbox.Message{TenantID: "t1", EventType: "rotated", Payload: []byte("{}"), Key: outbox.Key("t1", "a", "b", "c", version)})
	if err != nil {
		t.Fatal(err)
	}
	w.outbox.Sweep()
	return consumers.Version{Version: version, TenantID: "t1", EventID: added.ID, From: w.now.Add(5 * time.Minute), Grace: time.Hour}
}

// consumers returns the Consumers of a process that reaches storage through an interceptor.
func (w *world) consumers(t testing.TB, names []string, intercept faults.Interceptor) *consumers.Consumers {
	t.Helper()
	c, err := consumers.New(consumers.Config{Engine: "hmac", Tables: faults.Tables(w.tables, intercept), Outbox: w.outbox.Admin(), Roles: []string{"keeper"},
		Targets: map[string]consumers.Target{target: {TenantID: "t1", Names: names}}, Now: func() time.Time { return w.now },
		Knows: func(_ context.Context, _, version string) (bool, error) { return strings.HasPrefix(version, "v"), nil }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func untouched(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	return next(ctx)
}

// Only a delivered event has arrived, and a later version is sufficient.
func TestArrivalAtTheReceiver(t *testing.T) {
	t.Parallel()
	act := func(action outbox.Action) func(*testing.T, *world, consumers.Version) {
		return func(t *testing.T, w *world, v consumers.Version) {
			t.Helper()
			admin := w.outbox.Admin()
			err := map[outbox.Action]func() error{
				outbox.ActionSkip:   func() error { return admin.Skip(t.Context(), "t1", v.EventID, "somebody") },
				outbox.ActionRetry:  func() error { return admin.Retry(t.Context(), "t1", v.EventID, "somebody") },
				outbox.ActionReplay: func() error { return admin.Replay(t.Context(), "t1", v.EventID, "somebody") },
			}[action]()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		down    bool
		do      func(*testing.T, *world, consumers.Version)
		missing string
	}{
		"delivered":                    {false, nil, ""},
		"dead":                         {true, nil, "(dead)"},
		"skipped by an operator":       {true, act(outbox.ActionSkip), "(skipped)"},
		"retried, and not yet there":   {true, act(outbox.ActionRetry), "(pending)"},
		"replayed, and not there anew": {false, act(outbox.ActionReplay), "(pending)"},
		"gone": {false, func(t *testing.T, w *world, v consumers.Version) {
			w.now = w.now.Add(time.Hour)
			if n, _, err := w.outbox.Admin().Retention(t.Context(), w.now, 10); err != nil || n != 1 {
				t.Fatalf("%d removed, %v", n, err)
			}
		}, "(not in the outbox)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.outbox.Down = test.down
			v := w.announce(t, "v1")
			if test.do != nil {
				test.do(t, w, v)
			}
			w.now = w.now.Add(2 * time.Hour)
			c := w.consumers(t, nil, untouched)
			ask := func(versions ...consumers.Version) *consumers.Waiting {
				waiting, err := c.Arrived(t.Context(), consumers.Question{Target: target, Versions: versions, Retires: []string{"v0"}})
				if err != nil {
					t.Fatal(err)
				}
				return waiting
			}
			got := ask(v)
			if test.missing == "" {
				if got != nil {
					t.Errorf("it waits: %+v", got)
				}
				return
			}
			want := &consumers.Waiting{Version: "v1", EventID: v.EventID, Missing: []string{"the receiver of event " + v.EventID + " " + test.missing},
				Retires: []string{"v0"}, Patience: consumers.DefaultPatience, Roles: []string{"keeper"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			w.outbox.Down = false
			later := w.announce(t, "v2")
			if got := ask(v, later); got == nil || len(got.Missing) != 0 || got.ReadyAtUtc.Before(w.now) || got.ReadyAtUtc.After(later.From.Add(later.Grace)) {
				t.Errorf("when a later one has come: %+v", got)
			}
			w.now = w.now.Add(2 * time.Hour)
			if got := ask(v, later); got != nil {
				t.Errorf("when a later one was taken up: %+v", got)
			}
		})
	}
}

// A consumer that acknowledges late has its full time from then on.
func TestALateConsumerHasItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.announce(t, "v1")
	c := w.consumers(t, []string{"gateway"}, untouched)
	w.now = w.now.Add(10 * time.Hour)
	acknowledged := w.now
	if _, err := c.Acknowledge(t.Context(), consumers.Acknowledgement{Target: target, Version: "v1", Consumer: "gateway"}); err != nil {
		t.Fatal(err)
	}
	q := consumers.Question{Target: target, Versions: []consumers.Version{v}}
	if got, err := c.Arrived(t.Context(), q); err != nil || got == nil || !got.ReadyAtUtc.Equal(acknowledged.Add(time.Hour)) || len(got.Missing) != 0 {
		t.Errorf("Arrived = %+v, %v", got, err)
	}
	q.Now = acknowledged.Add(time.Hour) // as the run knows after sleeping until then
	if got, err := c.Arrived(t.Context(), q); err != nil || got != nil {
		t.Errorf("Arrived = %+v, %v", got, err)
	}
}

// Waiting credentials are recorded, and removed when the wait is over or no run checks any longer.
func TestNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.announce(t, "v1")
	c := w.consumers(t, []string{"gateway"}, untouched)
	count := func() int {
		n, err := consumers.CountWaiting(t.Context(), w.tables, w.now)
		if err != nil {
			t.Fatal(err)
		}
		return n["hmac"]
	}
	ask := func(waited bool) {
		if _, err := c.Arrived(t.Context(), consumers.Question{Target: target, Versions: []consumers.Version{v}, Waited: waited}); err != nil {
			t.Fatal(err)
		}
	}
	w.now = w.now.Add(3 * time.Hour)
	if ask(false); count() != 1 {
		t.Errorf("%d wait", count())
	}
	if n, waits, err := c.Waits(t.Context(), target); err != nil || !waits || n.Version != "v1" || !slices.Equal(n.Missing, []string{"gateway"}) {
		t.Errorf("Waits = %+v, %t, %v", n, waits, err)
	}
	w.now = w.now.Add(3 * time.Hour)
	if _, waits, err := c.Waits(t.Context(), target); waits || err != nil || count() != 0 {
		t.Errorf("it waits although nobody looked for hours: %t, %v", waits, err)
	}
	ask(true)
	if _, err := c.Acknowledge(t.Context(), consumers.Acknowledgement{Target: target, Version: "v1", Consumer: "gateway"}); err != nil || count() != 1 {
		t.Errorf("%d wait, %v", count(), err)
	}
	for range 2 {
		if ask(true); count() != 0 {
			t.Errorf("%d wait when it has arrived", count())
		}
		if err := c.Settled(t.Context(), target); err != nil {
			t.Error(err)
		}
	}
}

// In an undisturbed rotation, a question costs one read of the outbox, and one query with registered consumers.
func TestCost(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{nil, {"gateway"}} {
		w := newWorld(t)
		v := w.announce(t, "v1")
		if len(names) > 0 {
			if _, err := w.consumers(t, names, untouched).Acknowledge(t.Context(), consumers.Acknowledgement{Target: target, Version: "v1", Consumer: "gateway"}); err != nil {
				t.Fatal(err)
			}
		}
		w.now = w.now.Add(2 * time.Hour)
		plan := &faults.Plan{}
		c, err := consumers.New(consumers.Config{Engine: "hmac", Tables: faults.Tables(w.tables, plan.Intercept), Outbox: outbox.NewAdmin(over(t, w, plan)),
			Targets: map[string]consumers.Target{target: {Names: names}}, Knows: func(context.Context, string, string) (bool, error) { return true, nil }, Now: func() time.Time { return w.now }})
		if err != nil {
			t.Fatal(err)
		}
		later := consumers.Version{Version: "v2", TenantID: "t1", EventID: "another"}
		if got, err := c.Arrived(t.Context(), consumers.Question{Target: target, Versions: []consumers.Version{v, later}}); err != nil || got != nil {
			t.Errorf("Arrived = %+v, %v", got, err)
		}
		if calls := plan.Calls(); len(calls) != 1+len(names) {
			t.Errorf("with %d registered consumers it takes %v", len(names), calls)
		}
	}
}

// over returns the outbox of a world through a plan.
func over(t *testing.T, w *world, plan *faults.Plan) *outbox.Outbox {
	t.Helper()
	o, err := outbox.New(outbox.Config{Tables: faults.Tables(w.tables, plan.Intercept), Queues: queues.NewMemory(), Blobs: blobs.NewMemory(), Options: outbox.DefaultOptions(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// With any fault of storage, an acknowledgement is recorded once, with its first time.
func TestAcknowledgeCrashes(t *testing.T) {
	t.Parallel()
	scenario := func(t *testing.T, plan *faults.Plan) {
		t.Helper()
		w := newWorld(t)
		a := consumers.Acknowledgement{Target: target, Version: "v1", Consumer: "gateway", By: "me"}
		c := w.consumers(t, []string{"gateway"}, plan.Intercept)
		began := w.now
		for try := range 5 {
			got, err := c.Acknowledge(t.Context(), a)
			if plan.Crashed() {
				plan = &faults.Plan{}
				c = w.consumers(t, []string{"gateway"}, plan.Intercept)
			}
			if err == nil && got.AtUtc.After(w.now) {
				t.Errorf("acknowledged at %v, and it is %v", got.AtUtc, w.now)
			}
			if err != nil && try == 4 {
				t.Error(err)
			}
			plan.Wait()
			w.now = w.now.Add(time.Minute)
		}
		all, err := c.Acknowledged(t.Context(), target)
		if err != nil || len(all) != 1 || all[0].By != "me" || all[0].AtUtc.Sub(began) > time.Minute {
			t.Errorf("Acknowledged = %+v, %v", all, err)
		}
	}
	run := func(t *testing.T, plan *faults.Plan) {
		synctest.Test(t, func(t *testing.T) { scenario(t, plan) }) // slow calls take no time
	}
	count := &faults.Plan{}
	run(t, count)
	for at := range 2 { // the query and the insert of the first call
		for _, fault := range faults.Faults() {
			t.Run(fmt.Sprint(at, fault), func(t *testing.T) { run(t, &faults.Plan{At: at + 1, Fault: fault}) })
		}
	}
}

// Acknowledgements in any order equal those of a plain map, of the latest ten versions of each registered consumer,
// and the rows are bounded.
func TestAcknowledgementsAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		all := []string{"a", "b", "c"}
		names := all
		want := map[string][]string{} // versions by consumer, oldest first
		for range rapid.IntRange(1, 60).Draw(rt, "acknowledgements") {
			w.now = w.now.Add(time.Second)
			if rapid.IntRange(0, 20).Draw(rt, "registered anew") == 0 {
				names = all[:rapid.IntRange(1, 3).Draw(rt, "names")]
			}
			name, version := rapid.SampledFrom(names).Draw(rt, "name"), fmt.Sprint("v", rapid.IntRange(0, 14).Draw(rt, "version"))
			c := w.consumers(t, names, untouched)
			if _, err := c.Acknowledge(t.Context(), consumers.Acknowledgement{Target: target, Version: version, Consumer: name}); err != nil {
				rt.Fatal(err)
			}
			if !slices.Contains(want[name], version) {
				want[name] = append(want[name], version)
				want[name] = want[name][max(0, len(want[name])-10):]
				maps.DeleteFunc(want, func(other string, _ []string) bool { return !slices.Contains(names, other) })
			}
			got := map[string][]string{}
			list, err := c.Acknowledged(t.Context(), target)
			if err != nil {
				rt.Fatal(err)
			}
			for _, a := range slices.Backward(list) {
				got[a.Consumer] = append(got[a.Consumer], a.Version)
			}
			rows := 0
			for _, versions := range want {
				rows += len(versions)
			}
			page, err := w.tables.Query(t.Context(), consumers.Table, tables.Query{Partition: tables.EscapeKey("hmac/" + target)})
			if err != nil || len(page.Entities) != rows {
				rt.Fatalf("%d rows, %v; want %d", len(page.Entities), err, rows)
			}
			shown := maps.Clone(want)
			maps.DeleteFunc(shown, func(other string, _ []string) bool { return !slices.Contains(names, other) })
			if diff := cmp.Diff(shown, got); diff != "" {
				rt.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}

func TestAcknowledgeRefuses(t *testing.T) {
	t.Parallel()
	c := newWorld(t).consumers(t, []string{"gateway"}, untouched)
	for _, test := range []struct {
		a    consumers.Acknowledgement
		want error
	}{
		{consumers.Acknowledgement{Target: target, Version: "v1"}, consumers.ErrInvalid},
		{consumers.Acknowledgement{Target: target, Consumer: "gateway"}, consumers.ErrInvalid},
		{consumers.Acknowledgement{Target: target, Version: strings.Repeat("v", 129), Consumer: "gateway"}, consumers.ErrInvalid},
		{consumers.Acknowledgement{Target: target, Version: "v1", Consumer: "other"}, consumers.ErrNotRegistered},
		{consumers.Acknowledgement{Target: "other", Version: "v1", Consumer: "gateway"}, consumers.ErrNotRegistered},
		{consumers.Acknowledgement{Target: target, Version: "x", Consumer: "gateway"}, consumers.ErrUnknownVersion},
	} {
		if _, err := c.Acknowledge(t.Context(), test.a); !errors.Is(err, test.want) {
			t.Errorf("Acknowledge(%+v) = %v, want %v", test.a, err, test.want)
		}
	}
	if all, err := c.Acknowledged(t.Context(), target); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := consumers.New(consumers.Config{Patience: -1, Targets: map[string]consumers.Target{
		"i1": {Names: []string{"a", "a"}}, "i2": {Names: []string{"", "b c"}}, "i3": {Names: make([]string, 21)}, "i4": {Names: []string{strings.Repeat("n", 65)}}}})
	for _, says := range []string{"Config.Engine", "Config.Knows", "Patience", `"i1": the consumer "a" is listed twice`, `"i2": the consumer ""`, "at most 20", `"i4"`} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("New = %v, want it to say %q", err, says)
		}
	}
	c := newWorld(t).consumers(t, nil, untouched)
	if _, registered := c.Target(target); registered || len(c.Targets()) != 0 {
		t.Error("a target without consumers counts as one with some")
	}
}
