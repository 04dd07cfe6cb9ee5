package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

func TestResultOfAMessage(t *testing.T) {
	t.Parallel()
	for want, prepare := range map[engine.Result]func(t *testing.T, w *world, p *engine.Pipeline){
		engine.ResultWaiting:   func(*testing.T, *world, *engine.Pipeline) {},
		engine.ResultSucceeded: func(t *testing.T, w *world, p *engine.Pipeline) { w.host(t, w.always(p)) },
		engine.ResultRunning: func(t *testing.T, w *world, p *engine.Pipeline) {
			w.rests = between
			w.awake(t, p, time.Now().Add(time.Minute))
		},
		engine.ResultDead: func(t *testing.T, w *world, p *engine.Pipeline) {
			w.turn = func(context.Context) error { return errors.New("stuck") }
			w.host(t, w.always(p))
		},
		engine.ResultFailed: func(t *testing.T, w *world, p *engine.Pipeline) {
			w.turn = func(context.Context) error { return errors.New("stuck") }
			w.host(t, w.always(p))
			for _, l := range w.deadLetters(t) {
				if _, err := engine.NewDeadLetters(w.tables, "").Decide(t.Context(), l.Engine, l.RowKey, engine.Decision{Status: engine.StatusResolved, By: "ann", At: time.Now()}); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.prepare(t)
				p := w.process(t, nil)
				w.send(t, good)
				prepare(t, w, p)
				var m engine.Message
				if err := json.Unmarshal([]byte(good), &m); err != nil {
					t.Fatal(err)
				}
				if got, err := p.Result(t.Context(), "turntable", m); err != nil || got != want {
					t.Errorf("%q, %v", got, err)
				}
				if _, err := p.Result(t.Context(), "nobody", m); err == nil {
					t.Error("there is no such engine, and no error")
				}
			})
		})
	}
}
