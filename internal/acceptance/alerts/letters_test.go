package alerts

import (
	"time"
)

const day = 24 * time.Hour

// letterScenarios are those of dead letters and of failing engines.
func letterScenarios() []scenario {
	return []scenario{
		{alert: "RoundhouseDeadLettersPending", run: func(w *world) {
			w.well(20 * time.Minute)
			w.host.Send("work-queue", "this is not JSON")
			w.broken(30 * time.Minute)
			w.resolve("work")
			w.mended(20 * time.Minute)
		}},
		{name: "a dead letter that is retried in vain", alert: "RoundhouseDeadLettersPending", run: func(w *world) {
			w.well(20 * time.Minute)
			w.host.Send("work-queue", "this is not JSON")
			w.spend(30 * time.Minute)
			w.retry("work")
			w.broken(30 * time.Minute)
			w.resolve("work")
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhouseDeadLettersOld", also: []string{"RoundhouseDeadLettersPending"}, every: 10 * time.Minute, run: func(w *world) {
			w.well(20 * time.Minute)
			w.host.Send("work-queue", "this is not JSON")
			w.broken(25 * time.Hour)
			w.resolve("work")
			w.mended(time.Hour)
		}},
		{alert: "RoundhouseDeadLettersGrowing", also: []string{"RoundhouseDeadLettersPending"}, run: func(w *world) {
			w.host.Send("work-queue", "this is not JSON")
			w.spend(2 * time.Minute)
			w.resolve("work") // a single one is no growth, nor is a decision
			w.well(20 * time.Minute)
			w.meanwhile = func() {
				for range 3 {
					w.host.Send("work-queue", "this is not JSON")
				}
			}
			w.spend(5 * time.Minute)
			w.meanwhile = nil
			w.broken(8 * time.Minute)
			w.resolve("work")
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhouseEngineFailures", also: []string{"RoundhouseDeadLettersPending"}, run: func(w *world) {
			n := 0
			w.meanwhile = func() {
				if n++; n%2 == 0 {
					w.host.Send("work-queue", "{}")
				}
			}
			w.well(40 * time.Minute)
			w.app.ill.Store(true)
			w.broken(30 * time.Minute)
			w.app.ill.Store(false)
			w.spend(5 * time.Minute)
			w.resolve("work")
			w.mended(40 * time.Minute)
		}},
	}
}
