package alerts

import (
	"net/http"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// sweepTimer is the function that finds lost work.
const sweepTimer = "orchestration-sweep-timer"

// orchestrationScenarios are those of runs, their list, and the tasks of users.
func orchestrationScenarios() []scenario {
	return []scenario{
		{alert: "RoundhouseOrchestrationsStalled", also: []string{"RoundhouseDeadLettersPending"}, run: func(w *world) {
			w.host.Send("work-queue", `{"correlationId":"c1","input":{"do":"wait"}}`)
			w.well(110 * time.Minute)
			w.app.changed.Store(true)
			w.restart()
			w.broken(60 * time.Minute) // the timer of the run fires
			w.app.changed.Store(false)
			w.restart()
			w.resolve("work") // the run continues by itself
			w.mended(60 * time.Minute)
		}},
		{alert: "RoundhouseOrchestrationsRetrying", also: []string{"RoundhouseEngineFailures", "RoundhouseDeadLettersPending"}, run: func(w *world) {
			n := 0
			w.meanwhile = func() {
				if n++; n%3 == 0 {
					w.host.Send("work-queue", "{}")
				}
			}
			w.well(20 * time.Minute)
			w.app.ill.Store(true)
			w.broken(110 * time.Minute)
			w.app.ill.Store(false)
			w.spend(5 * time.Minute)
			w.resolve("work")
			w.mended(40 * time.Minute)
		}},
		{alert: "RoundhouseOrchestrationsOverdue", run: func(w *world) {
			w.well(20 * time.Minute)
			w.storage.losing(func(c faults.Call) bool {
				return c.Operation == "Send" && c.Target == orchestrator.DefaultScheduleQueue
			})
			w.timer(sweepTimer, true)
			w.host.Send("work-queue", `{"correlationId":"c1","input":{"do":"wait"}}`)
			w.broken(160 * time.Minute)
			w.storage.losing(nil)
			w.timer(sweepTimer, false)
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseOrchestrationsDamaged", also: []string{"RoundhouseDeadLettersPending"}, run: func(w *world) {
			w.host.Send("work-queue", `{"correlationId":"c1","input":{"do":"wait"}}`)
			w.well(5 * time.Minute)
			lost := tables.Delete(tables.Key{Partition: "work-c1", Row: "r-00000001-00000001"}, "")
			if err := w.host.Tables.Apply(w.t.Context(), "orchestrations", lost); err != nil {
				w.t.Fatal(err)
			}
			w.restart() // the state in memory is intact
			w.host.Send("orchestration-signals", `{"signalId":"s1","workflowInstanceId":"work-c1","runtimeProvider":"roundhouse","signalType":"ExternalSignal","payload":{"event":"go","data":true}}`)
			w.broken(35 * time.Minute)
			w.do(http.MethodDelete, "/api/orchestrations/work-c1?force=true&reason=no+copy", "")
			time.Sleep(time.Minute)
			w.host.Deliver() // redeliver the event, which has no consumer now
			w.resolve("orchestration")
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhouseListRepairLag", every: 20 * time.Minute, run: func(w *world) {
			w.well(20 * time.Minute)
			w.timer(sweepTimer, true)
			w.broken(50 * time.Hour)
			w.timer(sweepTimer, false)
			w.mended(2 * time.Hour)
		}},
		{alert: "RoundhouseTasksOverdue", run: func(w *world) {
			w.host.Send("work-queue", `{"correlationId":"c1","input":{"do":"ask"}}`)
			w.well(8 * time.Minute)
			w.broken(45 * time.Minute)
			task := w.list("/api/tasks", "taskId")
			if len(task) != 1 {
				w.t.Fatalf("%d tasks", len(task))
			}
			w.do(http.MethodPost, "/api/tasks/work-c1/"+task[0]+"/complete", `{"output":true}`)
			w.mended(20 * time.Minute)
		}},
	}
}
