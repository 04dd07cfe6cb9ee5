package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// A start without a queue is settled like a message: with its history, or as a dead letter.
func TestAdmittedStarts(t *testing.T) {
	t.Parallel()
	const message = `{"instanceId":"i-1","input":{"degrees":90}}`
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.Restart(nil)
		begin := func(s orchestrator.Start) orchestrator.Start {
			t.Helper()
			s, err := p.Admit(t.Context(), s)
			if err == nil {
				_, err = w.Runtime().Start(t.Context(), s)
			}
			if err != nil {
				t.Fatal(err)
			}
			p.Run()
			return s
		}
		s := begin(orchestrator.Start{Orchestrator: "turntable", Input: []byte(message)})
		if s.ID != "turntable-"+s.CorrelationID {
			t.Errorf("%s for %s", s.ID, s.CorrelationID)
		}
		w.checkSucceeded(t, s.CorrelationID)
		if s := begin(orchestrator.Start{Orchestrator: "turntable", Input: []byte(message), CorrelationID: "c-1"}); s.ID != "turntable-c-1" {
			t.Error(s.ID)
		}
		w.checkSucceeded(t, "c-1")
		if s := begin(orchestrator.Start{Orchestrator: "turntable", Input: []byte(message), ID: "turntable-c-2"}); s.CorrelationID != "c-2" {
			t.Error(s.CorrelationID)
		}
		w.checkSucceeded(t, "c-2")
		w.dry = orchestrator.Permanent(errors.New("no oil"))
		begin(orchestrator.Start{Orchestrator: "turntable", Input: []byte(message), CorrelationID: "c-3"})
		if dead := w.DeadLetters("turntable"); len(dead) != 1 || dead[0].CorrelationID != "c-3" || !strings.Contains(dead[0].ErrorMessage, "no oil") {
			t.Errorf("%+v", dead)
		}
	})
}

func TestStartsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Restart(nil)
	for name, tt := range map[string]struct {
		s    orchestrator.Start
		want error
	}{
		"no engine":           {orchestrator.Start{Orchestrator: "nobody"}, engine.ErrNoEngine},
		"no object":           {orchestrator.Start{Orchestrator: "turntable", Input: []byte(`1`)}, engine.ErrRefused},
		"no member":           {orchestrator.Start{Orchestrator: "turntable", Input: []byte(`{"degrees":90}`)}, engine.ErrRefused},
		"another engine":      {orchestrator.Start{Orchestrator: "turntable", Input: []byte(`{"engine":"hmac"}`)}, engine.ErrRefused},
		"a blob":              {orchestrator.Start{Orchestrator: "turntable", Input: []byte(`{"inputBlob":"x"}`)}, engine.ErrRefused},
		"another id":          {orchestrator.Start{Orchestrator: "turntable", ID: "mine", CorrelationID: "c"}, engine.ErrRefused},
		"long instance":       {orchestrator.Start{Orchestrator: "turntable", Input: []byte(`{"instanceId":"` + strings.Repeat("x", 3000) + `"}`)}, engine.ErrRefused},
		"long correlation id": {orchestrator.Start{Orchestrator: "turntable", CorrelationID: strings.Repeat("x", 1000)}, engine.ErrRefused},
	} {
		if _, err := p.Admit(t.Context(), tt.s); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An engine with one run at a time refuses a second start while the first run is in progress.
func TestStartOfWhatRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		p := h.Restart(nil)
		begin := func(correlationID string) error {
			s, err := p.Admit(t.Context(), orchestrator.Start{Orchestrator: "door", RequestID: "request", CorrelationID: correlationID, Input: []byte(`{"instanceId":"i1"}`)})
			if err == nil {
				_, err = p.Runtime.Start(t.Context(), s)
			}
			return err
		}
		if err := begin("c-1"); err != nil {
			t.Fatal(err)
		}
		var conflict *engine.ConflictError
		if err := begin("c-2"); !errors.As(err, &conflict) || conflict.Holder != "c-1" {
			t.Errorf("%v", err)
		}
		if err := begin("c-1"); err != nil { // a repeat of the first start
			t.Error(err)
		}
		p.Run()
		if err := begin("c-2"); err != nil {
			t.Error(err)
		}
		p.Run()
		h.check(t, "c-1", "c-2")
	})
}
