package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// kinds are the kinds of engines: they differ in the ids of their runs and in the forms of their messages.
var kinds = map[string]func(*world){
	"plain":                  func(*world) {},
	"singleton per instance": func(w *world) { w.scope = engine.PerInstance },
	"singleton per tenant":   func(w *world) { w.scope = engine.PerTenant },
	"adapted": func(w *world) {
		w.adapt = func([]byte) (engine.Message, bool, error) { return engine.Message{}, false, nil }
	},
}

// A message under the correlation id of other work is a dead letter, for every kind of engine, in every state of that work and
// through every entry point. The work itself continues. The same message in another JSON text is a repeat.
func TestCorrelationConflict(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"operation": `{"correlationId":"c1","engine":"turntable","operation":"lock","instanceId":"i1","tenantId":"Contoso","input":{"degrees":90}}`,
		"instance":  `{"correlationId":"c1","engine":"turntable","instanceId":"i2","tenantId":"Contoso","input":{"degrees":90}}`,
		"input":     `{"correlationId":"c1","engine":"turntable","instanceId":"i1","tenantId":"Contoso","input":{"degrees":91}}`,
		"no input":  `{"correlationId":"c1","engine":"turntable","instanceId":"i1","tenantId":"Contoso"}`,
		"tenant":    `{"correlationId":"c1","engine":"turntable","instanceId":"i1","tenantId":"Fabrikam","input":{"degrees":90}}`,
		"the same":  `{"input": {"degrees": 90}, "instanceId": "i1", "correlationId": "c1", "tenantId": "contoso", "operation": "turn", "other": 1}`,
	} {
		for kind, change := range kinds {
			for _, state := range []string{"succeeded", "rests", "fails", "dead"} {
				for _, door := range []string{"queue", "last attempt", "poison"} {
					t.Run(name+"/"+kind+"/"+state+"/"+door, func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { conflict(t, change, body, state, door, name == "the same") })
					})
				}
			}
		}
	}
}

func conflict(t *testing.T, change func(*world), body, state, door string, repeat bool) {
	t.Helper()
	w, broken := newWorld(t), errors.New("stuck")
	change(w)
	p := w.Restart(nil)
	w.Send(testQueue, good)
	switch state {
	case "succeeded":
		p.Run()
	case "rests":
		w.rests = between
		w.Pass(time.Minute)
	case "fails", "dead":
		w.turn = func(context.Context) error { return broken }
		if state == "dead" {
			p.Run()
		} else if n := w.deliverWithin(p, time.Minute); n != 1 {
			t.Fatalf("%d deliveries", n)
		}
	}
	before, turns := len(w.DeadLetters("turntable")), w.turns.Load()
	d := engine.Delivery{Queue: testQueue, ID: "another", Body: []byte(body), DequeueCount: 1, InsertedAt: time.Now()}
	handle := p.Handle
	switch door {
	case "last attempt":
		d.DequeueCount = 5
	case "poison":
		d.Queue, handle = testQueue+engine.PoisonSuffix, p.HandlePoison
	}
	if repeat {
		if err := handle(t.Context(), d); err == nil && slices.ContainsFunc(w.DeadLetters("turntable"), isConflict) {
			t.Errorf("a repeat is a conflict: %+v", w.DeadLetters("turntable"))
		}
		return
	}
	for range 2 { // its acknowledgement may be lost
		if err := handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.turns.Load(); n != turns {
		t.Errorf("%d turns, %d before", n, turns)
	}
	letters := slices.DeleteFunc(w.DeadLetters("turntable"), func(l engine.DeadLetter) bool { return !isConflict(l) })
	if len(letters) != 1 || string(letters[0].OriginalMessage) != body || letters[0].MessageID != "another" || letters[0].CorrelationID != "c1" {
		t.Fatalf("%+v", w.DeadLetters("turntable"))
	}
	broken = nil
	p.Run()
	if letters := w.DeadLetters("turntable"); len(letters) != before+1 {
		t.Errorf("%d dead letters, %d before", len(letters), before)
	}
	if state == "dead" {
		return
	}
	for _, e := range w.History("turntable", "c1") {
		if e.InstanceID != "i1" {
			t.Errorf("%+v", e)
		}
	}
	if !slices.ContainsFunc(w.History("turntable", "c1"), func(e engine.Entry) bool { return e.RunStatus == engine.StatusSucceeded }) {
		t.Error("the work has not succeeded")
	}
}

func isConflict(l engine.DeadLetter) bool {
	return l.DetectedReason == engine.ReasonCorrelationConflict
}

// An older version reserved no correlation ids, so runs of two instances can share one. Each continues with its own message, and
// neither supersedes the other.
func TestRunsOfAnOlderVersionShareACorrelationID(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"i1", "i2"} { // the instance whose run succeeds first
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.scope = engine.PerInstance
				w.turn = func(context.Context) error { return errors.New("stuck") }
				p := w.Restart(nil)
				bodies := map[string]string{"i1": good, "i2": strings.Replace(good, "i1", "i2", 1)}
				deliver := func(instance string, count int) error {
					return p.Handle(t.Context(), engine.Delivery{Queue: testQueue, ID: instance, Body: []byte(bodies[instance]), DequeueCount: count, InsertedAt: time.Now()})
				}
				second := map[string]string{"i1": "i2", "i2": "i1"}[first]
				for _, instance := range []string{"i1", "i2"} {
					if err := deliver(instance, 1); err == nil {
						t.Fatal("the first attempt succeeds")
					}
					w.forgetReservation(t)
					time.Sleep(time.Second) // virtual
				}
				w.turn = nil
				for _, instance := range []string{first, second, first, second} {
					if err := deliver(instance, 2); err != nil {
						t.Fatal(err)
					}
					w.forgetReservation(t)
					time.Sleep(time.Second) // virtual: keys of entries have times
				}
				if dead := w.DeadLetters("turntable"); len(dead) != 0 {
					t.Errorf("dead letters: %+v", dead)
				}
				entries, succeeded := w.History("turntable", "c1"), map[string]string{}
				for _, e := range entries {
					if e.RunStatus == engine.StatusSucceeded {
						succeeded[e.InstanceID] += e.RowKey
					}
				}
				for _, e := range entries {
					if e.Status == engine.StatusFailed && e.SupersededBy != succeeded[e.InstanceID] {
						t.Errorf("%+v is superseded by %q", e, e.SupersededBy)
					}
				}
				if len(succeeded) != 2 || w.turns.Load() != 4 {
					t.Errorf("succeeded: %v, %d turns", succeeded, w.turns.Load())
				}
			})
		})
	}
}

// forgetReservation deletes the reservation of the correlation id c1.
func (w *world) forgetReservation(t *testing.T) {
	t.Helper()
	err := w.Tables.Apply(t.Context(), "engineReservations", tables.Delete(tables.Key{Partition: "c1", Row: "turntable"}, ""))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		t.Fatal(err)
	}
}

// A singleton's start over HTTP is refused if its correlation id belongs to other work, and is repeated otherwise: work that has
// succeeded is not done again.
func TestStartsOfASingletonUnderOneCorrelationID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.scope = engine.PerInstance
		p := w.Restart(nil)
		start := func(body string) error {
			s, err := p.Admit(t.Context(), orchestrator.Start{Orchestrator: "turntable", Input: []byte(body)})
			if err == nil {
				_, err = p.Runtime.Start(t.Context(), s)
			}
			w.Run()
			return err
		}
		other := func(old, text string) string { return strings.Replace(good, old, text, 1) }
		for _, body := range []string{good, good} {
			if err := start(body); err != nil || w.turns.Load() != 1 {
				t.Fatalf("%d turns, %v", w.turns.Load(), err)
			}
		}
		for _, body := range []string{other("i1", "i2"), other("90", "91"), other("Contoso", "Fabrikam"), other(`"input"`, `"operation":"lock","input"`)} {
			if err := start(body); !errors.Is(err, orchestrator.ErrOtherWork) || !errors.Is(err, orchestrator.ErrExists) {
				t.Errorf("%s: %v", body, err)
			}
		}
		for _, id := range []string{"c2", "c3", "c4"} { // until the orchestration no longer shows the run
			if err := start(other("c1", id)); err != nil {
				t.Fatal(err)
			}
		}
		if err := start(good); err != nil && !errors.Is(err, orchestrator.ErrExists) || w.turns.Load() != 4 {
			t.Errorf("%d turns, %v", w.turns.Load(), err)
		}
	})
}

// The retention of the history releases correlation ids.
func TestRetentionReleasesCorrelationIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.scope = engine.PerInstance
		w.Restart(nil)
		w.Send(testQueue, good)
		w.Send(testQueue, strings.Replace(good, "c1", "c/2", 1))
		w.Run()
		rows := func() int {
			n := 0
			for _, id := range []string{"c1", "c/2"} {
				if _, err := w.Tables.Get(t.Context(), "engineReservations", tables.Key{Partition: tables.EscapeKey(id), Row: "turntable"}); err == nil {
					n++
				}
			}
			return n
		}
		history, before := engine.NewHistory(w.Tables, ""), rows()
		n, more, err := history.Retention(t.Context(), engine.Retention{Engines: []string{"turntable"}, Singletons: true}, time.Now().Add(2*engine.DefaultKeep), 100)
		if before != 2 || n != 4 || more || err != nil || rows() != 0 {
			t.Errorf("%d entries removed, more %v, %v; %d rows before, %d after", n, more, err, before, rows())
		}
	})
}
