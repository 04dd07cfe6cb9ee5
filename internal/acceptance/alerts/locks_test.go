package alerts

import (
	"context"
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/tables/hostlock"
)

// lockScenarios are those of the locks of instances and of jobs.
func lockScenarios() []scenario {
	return []scenario{
		{alert: "RoundhouseInstanceLocksExpired", run: func(w *world) {
			w.do(http.MethodPost, "/api/registry", `{"instanceId":"i1"}`)
			w.host.Send("work-queue", `{"correlationId":"c1","instanceId":"i1","input":{"do":"lock"}}`)
			w.well(30 * time.Minute) // it renews its lock
			w.do(http.MethodPost, "/api/orchestrations/work-c1/terminate", `{"reason":"nobody needs it"}`)
			w.broken(60 * time.Minute)
			w.do(http.MethodPost, "/api/registry/i1/unlock", "")
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhouseHostLockOld", run: func(w *world) {
			w.well(150 * time.Minute)
			hung, ended := make(chan struct{}), make(chan error, 1)
			locks := hostlock.Locks{Tables: w.host.Tables, Node: func() string { return "another" }}
			go func() { // another process, with a hanging sweep
				ended <- locks.Do(w.t.Context(), "sweeper", time.Minute, func(context.Context) error { <-hung; return nil })
			}()
			w.broken(140 * time.Minute)
			close(hung)
			if err := <-ended; err != nil {
				w.t.Error(err)
			}
			w.mended(20 * time.Minute)
		}},
	}
}
