package orchestrator

// Damage is contained: an unreadable orchestration is reported once, can be removed, and blocks nothing else.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// eachInjury runs a test for every kind of damage.
func eachInjury(t *testing.T, test func(t *testing.T, c *clinic, hurt injury)) {
	t.Helper()
	t.Parallel()
	for name, hurt := range injuries() {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { test(t, newClinic(t), hurt) })
		})
	}
}

// All operations on a damaged orchestration fail with ErrCorrupt, and change nothing.
func TestDamagedIsRefused(t *testing.T) {
	eachInjury(t, func(t *testing.T, c *clinic, hurt injury) {
		rt := c.open(t, nil)
		c.admit(t, rt, false, "a")
		hurt.do(t, c, "a")
		before := c.rows(t, "a")
		for name, ask := range map[string]func(context.Context) error{
			"readable": func(ctx context.Context) error { return rt.Readable(ctx, "a") },
			"get":      func(ctx context.Context) error { _, err := rt.Get(ctx, "a"); return err },
			"inspect":  func(ctx context.Context) error { _, err := rt.Inspect(ctx, "a"); return err },
			"restart":  func(ctx context.Context) error { _, err := rt.Restart(ctx, "a", ""); return err },
			"rewind":   func(ctx context.Context) error { _, err := rt.Rewind(ctx, "a", ""); return err },
			"start": func(ctx context.Context) error {
				_, err := rt.Start(ctx, startRequest("a", 1, "r", ReuseAny))
				return err
			},
			"purge":   func(ctx context.Context) error { return rt.Purge(ctx, "a") },
			"give up": func(ctx context.Context) error { return rt.GiveUp(ctx, "a", "corr", errors.New("no")) },
			"event": func(ctx context.Context) error {
				_, err := rt.Deliver(ctx, eventSignal("a", "e", "number", "1"))
				return err
			},
			"terminate": func(ctx context.Context) error {
				s := eventSignal("a", "t", "", "")
				s.Payload = Payload{Command: commandTerminate}
				_, err := rt.Deliver(ctx, s)
				return err
			},
			"resumed": func(ctx context.Context) error {
				s := startOf("a", 1)
				s.Resume = true
				_, err := rt.Run(ctx, s)
				return err
			},
		} {
			err := ask(t.Context())
			isError(t, name, err, ErrCorrupt)
			if d, ok := errors.AsType[*DamageError](err); !ok || d.ID != "a" {
				t.Errorf("%s: %#v names nobody", name, err)
			}
		}
		c.unchanged(t, "a", before)
		wants(t, "known as damaged", knownDamaged(t, rt), "a")
		wants(t, "told", c.reported(), 1)
		if rt.Counts().Damaged < 2 {
			t.Errorf("met %d times", rt.Counts().Damaged)
		}
	})
}

// Lists, purges by filter and sweeps treat other orchestrations as without damage.
func TestDamagedStandsInNobodysWay(t *testing.T) {
	eachInjury(t, func(t *testing.T, c *clinic, hurt injury) {
		rt := c.open(t, nil)
		c.admit(t, rt, true, "0", "a", "b")
		c.admit(t, rt, false, "c")
		hurt.do(t, c, "a")
		before := c.rows(t, "a")
		list, _, err := rt.List(t.Context(), Filter{}, 10, "")
		isError(t, "list", err, nil)
		var ids []string
		for _, s := range list {
			ids = append(ids, s.ID)
		}
		want := []string{"0", "a", "b", "c"}
		if hurt.hidden {
			want = []string{"0", "b", "c"}
		}
		wants(t, "list", ids, want)

		p, err := rt.PurgeAll(t.Context(), Filter{EndedBefore: time.Now().Add(time.Hour)}, 10, "")
		isError(t, "purge", err, nil)
		found := 1
		if hurt.hidden {
			found = 0
		}
		wants(t, "purged", p, Purged{Orchestrations: 2, Damaged: found})
		c.unchanged(t, "a", before)
		for _, id := range []string{"0", "b"} {
			_, err := rt.Get(t.Context(), id)
			isError(t, id, err, ErrNotFound)
		}
		isError(t, "what a list of others finds", rt.FindDamage(t.Context(), "a"), nil)
		wants(t, "known as damaged", knownDamaged(t, rt), "a")
		wants(t, "told", c.reported(), 1)
	})
}

// An unreadable orchestration is not woken repeatedly, only when it can be read. A lost message of another one is
// found.
func TestSweepBesideDamage(t *testing.T) {
	eachInjury(t, func(t *testing.T, c *clinic, hurt injury) {
		rt := c.open(t, nil)
		c.start(t, rt, startOf("a", 8))
		c.start(t, rt, startOf("b", 8))
		intact, blobs := c.rows(t, "a"), c.blobsOf(t, "a")
		hurt.do(t, c, "a")
		c.clear(t) // of the messages of both timers
		isError(t, "raise", rt.Raise(t.Context(), "b", "number", 5, ""), nil)
		time.Sleep(time.Hour)
		c.attend(t, rt, time.Hour)
		wants(t, "the other one", stands(t, rt, "b"), "Completed 5")
		wants(t, "known as damaged", knownDamaged(t, rt), "a")
		wants(t, "told", c.reported(), 1)
		woken := rt.Counts().Woken
		c.attend(t, rt, 24*time.Hour)
		wants(t, "woken since", rt.Counts().Woken-woken, 0)

		c.restore(t, "a", intact, blobs)
		isError(t, "raise", rt.Raise(t.Context(), "a", "number", 6, ""), nil)
		c.attend(t, rt, time.Hour)
		wants(t, "restored", stands(t, rt, "a"), "Completed 6")
		wants(t, "known as damaged", knownDamaged(t, rt), "")
	})
}

// An unreadable row of the index remains, is in the error, and blocks no other.
func TestSweepBesideABadRow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newClinic(t)
		rt := c.open(t, nil)
		c.start(t, rt, startOf("a", 8))
		c.start(t, rt, startOf("b", 8))
		c.clear(t)
		bad := 0
		odd := c.over(t, func(ctx context.Context, call faults.Call, next func(context.Context) error) error {
			if call.Operation == "Send" && bad == 0 {
				bad++
				return tables.ErrInvalid // an arbitrary failure of the first one
			}
			return next(ctx)
		})
		time.Sleep(2 * time.Hour)
		woken, err := odd.Sweep(t.Context(), 10)
		isError(t, "sweep", err, tables.ErrInvalid)
		if woken == 0 {
			t.Error("nobody else was woken")
		}
		c.attend(t, rt, time.Hour)
		for _, id := range []string{"a", "b"} {
			isError(t, "raise", rt.Raise(t.Context(), id, "number", 5, ""), nil)
			c.attend(t, rt, time.Minute)
			wants(t, id, stands(t, rt, id), "Completed 5")
		}
	})
}

// Damage that could not be reported is reported by a later sweep; once.
func TestDamageIsToldUntilItIsTaken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newClinic(t)
		rt := c.open(t, nil)
		c.admit(t, rt, false, "a")
		loses(roundKey(1, 2))(t, c, "a")
		c.isDeaf(errors.New("no time"))
		for range 3 {
			_, err := rt.Deliver(t.Context(), eventSignal("a", "e", "number", "1"))
			isError(t, "deliver", err, ErrCorrupt)
		}
		if _, err := rt.Sweep(t.Context(), 10); err == nil {
			t.Error("a sweep that could not tell says nothing")
		}
		wants(t, "told", c.reported(), 0)
		c.isDeaf(nil)
		for range 3 {
			c.mustSweep(t, rt)
		}
		wants(t, "told", c.reported(), 1)
	})
}

// A partition with a name that is no id is left out and reported; no id refers to it. The sweeper forgets it when it
// is gone.
func TestPartitionWithoutAnID(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newClinic(t)
		rt := c.open(t, nil)
		c.admit(t, rt, true, "a", "b")
		const nameless = "a=zz"
		var foreign []tables.Op
		for _, e := range c.rows(t, "a") {
			e.Partition, e.ETag = nameless, ""
			foreign = append(foreign, tables.Insert(e))
		}
		foreign = append(foreign, tables.Insert(tables.Entity{Key: tables.Key{Partition: nameless, Row: purgeRow}}))
		isError(t, "insert", c.tables.Apply(t.Context(), "orchestrations", foreign...), nil)
		for limit := 1; limit <= 3; limit++ {
			ids, next := []string{}, ""
			for more := true; more; more = next != "" {
				list, then, err := rt.List(t.Context(), Filter{}, limit, next)
				isError(t, "list", err, nil)
				for _, s := range list {
					ids = append(ids, s.ID)
				}
				next = then
			}
			wants(t, "ids", ids, []string{"a", "b"})
		}
		p, err := rt.PurgeAll(t.Context(), Filter{}, 10, "")
		isError(t, "purge", err, nil)
		wants(t, "purged", p, Purged{Orchestrations: 2, Damaged: 1})
		found, _, err := rt.Damages(t.Context(), 10)
		isError(t, "damages", err, nil)
		if len(found) != 1 || found[0].ID != "" || found[0].Partition != nameless {
			t.Errorf("%+v", found)
		}
		c.mustSweep(t, rt)
		wants(t, "told", c.reported(), 1)
		for _, e := range foreign {
			c.apply(t, tables.Delete(e.Entity.Key, ""))
		}
		c.mustSweep(t, rt)
		found, _, err = rt.Damages(t.Context(), 10)
		if err != nil || len(found) != 0 {
			t.Errorf("%+v %v", found, err)
		}
	})
}

// A damaged sub-orchestration prevents the purge of its caller, and of no other one.
func TestPurgeAllBesideADamagedChild(t *testing.T) {
	eachInjury(t, func(t *testing.T, c *clinic, hurt injury) {
		parent := NewOrchestrator("parent", func(ctx *Context, n int) (int, error) {
			return NewOrchestrator("test", func(*Context, int) (int, error) { return 0, nil }).Call(ctx, n, WithID("p:child")).Await()
		})
		c.orchestrators = append(c.orchestrators, parent)
		rt := c.open(t, nil)
		s := startOf("p", 1)
		s.Orchestrator = "parent"
		c.start(t, rt, s)
		isError(t, "raise", rt.Raise(t.Context(), "p:child", "number", 1, ""), nil)
		c.rest(t, rt)
		c.admit(t, rt, true, "q")
		hurt.do(t, c, "p:child")
		p, err := rt.PurgeAll(t.Context(), Filter{}, 10, "")
		isError(t, "purge", err, nil)
		wants(t, "purged", p, Purged{Orchestrations: 1, Damaged: 1})
		wants(t, "known as damaged", knownDamaged(t, rt), "p:child")
		isError(t, "forced", rt.ForcePurge(t.Context(), "p"), nil)
		c.gone(t, "p")
	})
}

// blobsOf returns the payloads of an orchestration.
func (c *clinic) blobsOf(t *testing.T, id string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range c.shelf.all() {
		if data, err := c.blobs.Get(t.Context(), "orchestrations", name); err == nil && slices.Contains([]string{id}, name[:len(id)]) {
			all[name] = data
		}
	}
	return all
}

// clear empties the signal queue.
func (c *clinic) clear(t *testing.T) {
	t.Helper()
	for {
		if n, err := c.queues.Length(t.Context(), signalQueue); err != nil || n == 0 {
			return
		}
		messages, err := c.queues.Receive(t.Context(), signalQueue, 32, time.Minute)
		for _, m := range messages {
			err = errors.Join(err, c.queues.Delete(t.Context(), signalQueue, m.ID, m.PopReceipt))
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			time.Sleep(time.Hour) // until a timer's message is visible
		}
	}
}

// restore brings rows and payloads back.
func (c *clinic) restore(t *testing.T, id string, rows []tables.Entity, blobs map[string][]byte) {
	t.Helper()
	for _, e := range rows {
		if now, err := c.tables.Get(t.Context(), "orchestrations", e.Key); err != nil || now.ETag != e.ETag {
			c.apply(t, tables.Upsert(e))
		}
	}
	for name, data := range blobs {
		if err := c.shelf.Put(t.Context(), "orchestrations", name, data); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", id, err))
		}
	}
}
