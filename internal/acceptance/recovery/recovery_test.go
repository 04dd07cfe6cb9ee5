package recovery

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Each drill has its own processes. It brings orchestrations half way, causes a failure, and checks that all finish.

// halfWay returns a drill whose nodes are at work.
func halfWay(t *testing.T, nodes int) *drill {
	t.Helper()
	d := newDrill(t)
	for range nodes {
		d.launch(t, false)
	}
	d.orderAll(t, nap)
	d.raise(t, 0)
	return d
}

// TestOneNodeDown: one node of three dies at work, and is not restarted. The others do its work (11.1).
func TestOneNodeDown(t *testing.T) {
	d := halfWay(t, 3)
	d.under(t, *runs).Kill()
	began := time.Now()
	d.raise(t, 1, 2)
	d.timed(t, "one node of three was killed", began)
}

// TestAllNodesDown: all nodes die at work. Messages sent and timers due meanwhile wait for the first node that restarts
// (11.2).
func TestAllNodesDown(t *testing.T) {
	d := halfWay(t, 3)
	d.under(t, *runs)
	d.killAll()
	d.raise(t, 1, 2)
	due(t, time.Now())
	began := time.Now()
	d.launch(t, false)
	d.timed(t, "the first node is back", began)
}

// TestStorageDown: storage stops and restarts with its data, while the nodes stay (11.3).
func TestStorageDown(t *testing.T) {
	d := halfWay(t, 2)
	d.under(t, *runs)
	d.stopStorage(t)
	if err := d.client.Raise(t.Context(), drillEngine+"-r000", "go", "", "lost"); err == nil {
		t.Fatal("storage is not away")
	}
	due(t, time.Now())
	d.startStorage(t)
	began := time.Now()
	d.raise(t, 1, 2)
	d.timed(t, "storage is back", began)
}

// TestEverythingDown: nodes and storage stop. Storage restarts, then a node (11.4).
func TestEverythingDown(t *testing.T) {
	d := halfWay(t, 2)
	d.raise(t, 1)
	d.under(t, *runs)
	d.killAll()
	d.stopStorage(t)
	due(t, time.Now())
	d.startStorage(t)
	began := time.Now()
	d.launch(t, false)
	d.raise(t, 2)
	d.timed(t, "a node is back", began)
}

// TestQueuesEmptied: an operator deletes all messages of the runtime's queues, wake-ups and events in transit included.
// The sweeper finds the orchestrations; the events have to be sent again, and those that had arrived are not delivered
// twice.
func TestQueuesEmptied(t *testing.T) {
	d := newDrill(t)
	for range 2 {
		d.launch(t, false)
	}
	d.orderAll(t, 4*nap)
	schedules := d.client.ScheduleQueue()
	testenv.Until(t, "all wait for a timer, or some still do when the first has fired", func() bool {
		n, err := d.queues.Length(t.Context(), schedules)
		if err != nil || n == *runs {
			return err == nil
		}
		return n > 0 && slices.ContainsFunc(slices.Collect(maps.Values(d.done(t))), func(what map[string]int) bool { return what["slept 0"] > 0 })
	})
	d.empty(t, schedules)
	emptied := time.Now()
	d.under(t, *runs)
	t.Logf("%.1f s after the schedules were emptied, %.1f s after they were due, all have been woken", time.Since(emptied).Seconds(), (time.Since(emptied) - 4*nap).Seconds())
	d.raise(t, 0, 1)
	for _, queue := range []string{d.client.SignalQueue(), schedules, d.client.ActivityQueue()} {
		d.empty(t, queue)
	}
	d.raise(t, 0, 1, 2)
	d.timed(t, "the queues were emptied", emptied)
	// All have finished, so those with deleted messages were woken. On an overloaded machine, some timers fire before
	// that.
	testenv.Until(t, "the sweeper has woken some", func() bool { return d.counts().Woken > 0 })
}

// TestDuplicateAndStaleSignals: every event is sent three times, as are signals with stale waits and versions, or for a
// purged orchestration. All of them are acknowledged, and change nothing.
func TestDuplicateAndStaleSignals(t *testing.T) {
	d := newDrill(t)
	d.order(t, legacyEngine, "purged", 0)
	old := d.launch(t, true) // alone: the others lack its engine
	id := legacyEngine + "-purged"
	testenv.Until(t, "one to purge", func() bool { _, err := d.client.Status(t.Context(), id); return err == nil })
	testenv.OK(t, d.client.Terminate(t.Context(), id, "to be purged"))
	testenv.Until(t, "its end", func() bool { s, err := d.client.Status(t.Context(), id); return err == nil && s.Ended() })
	testenv.OK(t, d.client.Purge(t.Context(), id))
	old.Kill()
	for range 2 {
		d.launch(t, false)
	}

	began := time.Now()
	d.orderAll(t, nap)
	dropped := 0
	send := func(s orchestrator.Signal) {
		t.Helper()
		testenv.OK(t, d.client.Send(t.Context(), s))
		dropped++
	}
	for range 3 {
		d.raise(t, 0, 1)
	}
	dropped += 4 * *runs
	send(orchestrator.Signal{InstanceID: id, Type: orchestrator.TimerDue, WaitingToken: "1-1"})
	testenv.Until(t, "all wait for their last event", func() bool {
		waiting := 0
		for _, what := range d.done(t) {
			waiting += what[fmt.Sprint("slept ", steps-1)]
		}
		return waiting >= *runs
	})
	for _, run := range names() {
		of := drillEngine + "-" + run
		event := orchestrator.Payload{Event: "go", Data: []byte(`"stale"`)}
		send(orchestrator.Signal{InstanceID: of, Type: orchestrator.TimerDue, WaitingToken: "1-99"})
		send(orchestrator.Signal{InstanceID: of, Type: orchestrator.ExternalSignal, WaitingToken: "1-3", Payload: event})
		send(orchestrator.Signal{InstanceID: of, Type: orchestrator.ExternalSignal, ExpectedVersion: 1, Payload: event})
		send(orchestrator.Signal{InstanceID: of, Type: orchestrator.InternalContinue, ExpectedVersion: 1 << 20})
	}
	counted := func() bool { c := d.counts(); return c.Stale+c.Duplicates >= dropped }
	testenv.Until(t, "all are counted", counted) // before the end: until then, wake-ups are not stale
	for range 3 {
		d.raise(t, steps-1)
	}
	dropped += 2 * *runs
	d.timed(t, "the first was sent", began)
	testenv.Until(t, "all are counted", counted)
	if letters := d.dead(t); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
	t.Logf("%d signals to be dropped, %+v", dropped, d.counts())
}

// timed waits until all have finished, and logs the time since an event.
func (d *drill) timed(t *testing.T, since string, began time.Time) {
	t.Helper()
	d.finished(t)
	t.Logf("%.1f s after %s, all have finished", time.Since(began).Seconds(), since)
}
