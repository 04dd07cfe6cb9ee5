package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/enginetest"
)

func TestResultOfAMessage(t *testing.T) {
	t.Parallel()
	for want, prepare := range map[engine.Result]func(t *testing.T, w *world, p *enginetest.Process){
		engine.ResultWaiting:   func(*testing.T, *world, *enginetest.Process) {},
		engine.ResultSucceeded: func(t *testing.T, w *world, p *enginetest.Process) { p.Run() },
		engine.ResultRunning: func(t *testing.T, w *world, p *enginetest.Process) {
			w.rests = between
			w.Pass(time.Minute)
		},
		engine.ResultDead: func(t *testing.T, w *world, p *enginetest.Process) {
			w.turn = func(context.Context) error { return errors.New("stuck") }
			p.Run()
		},
		engine.ResultFailed: func(t *testing.T, w *world, p *enginetest.Process) {
			w.turn = func(context.Context) error { return errors.New("stuck") }
			p.Run()
			for _, l := range w.DeadLetters("turntable") {
				if _, err := engine.NewDeadLetters(w.Tables, "").Decide(t.Context(), l.Engine, l.RowKey, engine.Decision{Status: engine.StatusResolved, By: "ann", At: time.Now()}); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p := w.Restart(nil)
				w.Send(testQueue, good)
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
