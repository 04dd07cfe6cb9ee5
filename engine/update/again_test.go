package update_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// An update that was rolled back and is retried from its dead letter repeats everything that was undone, and asks for
// no second approval.
func TestAnUpdateThatWasRolledBackIsDoneAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t)
		time.AfterFunc(time.Hour, func() {
			asked, err := p.Runtime().Tasks().List(t.Context(), tasks.Filter{}, 2, "")
			if err != nil || len(asked.Tasks) != 1 {
				t.Errorf("open tasks: %+v, %v", asked, err)
				return
			}
			if _, err := p.Runtime().Tasks().Complete(t.Context(), asked.Tasks[0].Ref, tasks.Person{ID: "ann"}, []byte(`{"approved":true}`), "", ""); err != nil {
				t.Error(err)
			}
		})
		p.send("c1", strings.Replace(twoUp, "{", `{"approval":{},`, 1))
		go func() { // the second component is refused
			for p.server.Version(instance, "web") != "1.1" {
				time.Sleep(100 * time.Millisecond)
			}
			p.server.Inject(updatetest.Fault{Method: "PUT", Status: 400})
		}()
		p.Run()
		dead := p.deadLetters()
		if s := p.state(t); len(dead) != 1 || s.Web != "1.0" || s.Db != "7" || s.Pending || s.Lock != "" {
			t.Fatalf("%+v, dead letters %+v", s, dead)
		}
		retrier, err := engine.NewRetrier(engine.RetrierConfig{DeadLetters: engine.NewDeadLetters(p.tables, ""), Queues: p.Queues})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := retrier.Retry(t.Context(), update.Engine, dead[0].RowKey, "ann"); err != nil {
			t.Fatal(err)
		}
		retried := time.Now()
		p.Run()
		out, err := p.Runtime().Get(t.Context(), "update-"+instance)
		if err != nil {
			t.Fatal(err)
		}
		if s, took := p.state(t), out.EndedAt.Sub(retried); s.Version != "2.0" || s.Web != "1.1" || s.Db != "8" || s.Lock != "" || took > time.Hour {
			t.Errorf("after %v: %+v", took, s)
		}
		got := strings.ReplaceAll(strings.Join(p.server.Log(), ", "), instance+" ", "")
		if diff := cmp.Diff("web 1.1, web 1.0, web 1.1, db 8", got); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
	})
}
