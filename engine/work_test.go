package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// A message under the correlation id of other work needs a person, wherever that work stands and by whichever door the message
// comes; the work itself goes on as if there were no such message. The same message in other letters is a repeat.
func TestCorrelationConflict(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"operation": `{"correlationId":"c1","engine":"turntable","operation":"lock","instanceId":"i1","tenantId":"Contoso","input":{"degrees":90}}`,
		"instance":  `{"correlationId":"c1","engine":"turntable","instanceId":"i2","tenantId":"Contoso","input":{"degrees":90}}`,
		"input":     `{"correlationId":"c1","engine":"turntable","instanceId":"i1","tenantId":"Contoso","input":{"degrees":91}}`,
		"no input":  `{"correlationId":"c1","engine":"turntable","instanceId":"i1","tenantId":"Contoso"}`,
		"the same":  `{"input": {"degrees": 90}, "instanceId": "i1", "correlationId": "c1", "tenantId": "contoso", "operation": "turn", "other": 1}`,
	} {
		for _, state := range []string{"succeeded", "rests", "fails", "dead"} {
			for _, door := range []string{"queue", "last attempt", "poison"} {
				t.Run(name+"/"+state+"/"+door, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { conflict(t, body, state, door, name == "the same") })
				})
			}
		}
	}
}

func conflict(t *testing.T, body, state, door string, repeat bool) {
	t.Helper()
	w, broken := newWorld(t), errors.New("stuck")
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
