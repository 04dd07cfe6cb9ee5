package recovery

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	kit "github.com/vibedata/roundhouse/internal/acceptance/drill"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

var runs = flag.Int("recovery.runs", 12, "how many orchestrations each drill has")

// nap is the duration of the drill's timers: long enough to park for.
const nap = time.Second

// drill is one storage account with its nodes, and the work that the test has given them.
type drill struct {
	config  azurite.Config
	server  *azurite.Server
	account azure.Account
	tables  *azure.Tables
	queues  *azure.Queues
	client  *orchestrator.Runtime // runs nothing
	history *engine.History
	letters *engine.DeadLetters
	nodes   []*process
}

// newDrill starts an Azurite that keeps its data, and prepares its storage for the nodes.
func newDrill(t *testing.T) *drill {
	t.Helper()
	testenv.Long(t)
	t.Parallel()
	d := &drill{config: azurite.Config{DataDir: t.TempDir(), BlobPort: testenv.Port(t), QueuePort: testenv.Port(t), TablePort: testenv.Port(t)}}
	d.startStorage(t)
	d.account = d.server.Account()
	t.Cleanup(func() {
		d.killAll()
		d.account.CloseIdleConnections()
		if err := d.server.Close(); err != nil {
			t.Error(err)
		}
	})
	n, _, err := newNode(nodeConfig{Name: "test", Connection: d.account.ConnectionString(), Legacy: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	testenv.OK(t, n.prepare(t.Context()))
	payloads, err := azure.NewBlobs(d.account)
	if err != nil {
		t.Fatal(err)
	}
	d.tables, d.queues = n.tables, n.queues
	d.history, d.letters = engine.NewHistory(d.tables, ""), engine.NewDeadLetters(d.tables, "")
	d.client, err = orchestrator.New(orchestrator.Config{Tables: d.tables, Queues: d.queues, Blobs: payloads, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// startStorage starts Azurite, on the same ports as before.
func (d *drill) startStorage(t *testing.T) {
	t.Helper()
	d.server = testenv.Must(azurite.Start(testenv.Context(t), d.config))(t)
}

// stopStorage stops Azurite. It writes its data first, as unavailable storage has its data.
func (d *drill) stopStorage(t *testing.T) {
	t.Helper()
	testenv.OK(t, d.server.Close())
}

// process is one life of a node.
type process = kit.Node[said]

// launch starts a node and waits until it is ready.
func (d *drill) launch(t *testing.T, legacy bool) *process {
	t.Helper()
	name := fmt.Sprintf("node-%d", len(d.nodes))
	p := kit.Launch[said](t, name, nodeEnv, nodeConfig{Name: name, Connection: d.account.ConnectionString(), Legacy: legacy})
	d.nodes = append(d.nodes, p)
	p.Await(t, "it is ready", func(said) bool { return true })
	return p
}

func (d *drill) killAll() {
	for _, p := range d.nodes {
		p.Kill()
	}
}

// counts returns the sum over all nodes, past and present.
func (d *drill) counts() (sum orchestrator.Counts) {
	for _, p := range d.nodes {
		lines := p.Lines()
		last := lines[len(lines)-1].Counts
		sum.Stale += last.Stale
		sum.Duplicates += last.Duplicates
		sum.Conflicts += last.Conflicts
		sum.Woken += last.Woken
	}
	return sum
}

// due waits until all timers that were set before a time are due.
func due(t *testing.T, since time.Time) {
	t.Helper()
	testenv.Until(t, "the timers are due", func() bool { return time.Since(since) > nap })
}

func names() (all []string) {
	for i := range *runs {
		all = append(all, fmt.Sprintf("r%03d", i))
	}
	return all
}

// order sends the message that starts a run of an engine.
func (d *drill) order(t *testing.T, engineName, run string, nap time.Duration) {
	t.Helper()
	input, err1 := json.Marshal(work{nap})
	body, err2 := json.Marshal(engine.Message{CorrelationID: run, Engine: engineName, InstanceID: engine.PublisherInstance, Input: input})
	_, err3 := d.queues.Send(t.Context(), queueOf(engineName), body, 0)
	testenv.OK(t, errors.Join(err1, err2, err3))
}

func (d *drill) orderAll(t *testing.T, nap time.Duration) {
	t.Helper()
	for _, run := range names() {
		d.order(t, drillEngine, run, nap)
	}
}

func eventOf(run string, step int) string { return fmt.Sprintf("%s/%d", run, step) }

// raise sends the events of some steps to all.
func (d *drill) raise(t *testing.T, which ...int) {
	t.Helper()
	for _, run := range names() {
		for _, step := range which {
			if err := d.client.Raise(t.Context(), drillEngine+"-"+run, "go", eventOf(run, step), eventOf(run, step)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// done counts the completed steps by orchestration and step.
func (d *drill) done(t *testing.T) map[string]map[string]int {
	t.Helper()
	all := map[string]map[string]int{}
	for e, err := range tables.All(t.Context(), d.tables, doneTable, tables.Query{Partition: donePartition}) {
		if err != nil {
			t.Fatal(err)
		}
		by := e.String(columnBy)
		if all[by] == nil {
			all[by] = map[string]int{}
		}
		all[by][e.String(columnWhat)]++
	}
	return all
}

// under waits until this many steps are done, and returns a node that was at work then.
func (d *drill) under(t *testing.T, least int) (worker *process) {
	t.Helper()
	known := map[string]int{}
	testenv.Until(t, "work is under way", func() bool {
		sum, by := 0, map[string]int{}
		for e, err := range tables.All(t.Context(), d.tables, doneTable, tables.Query{Partition: donePartition}) {
			if err != nil {
				t.Fatal(err)
			}
			sum++
			by[e.String(columnNode)]++
		}
		for _, p := range d.nodes {
			if by[p.Name] > known[p.Name] {
				worker = p
			}
		}
		known = by
		return sum >= least
	})
	return worker
}

// finished waits until all runs have succeeded. It checks that every timer has fired once and not too early, that every
// event was received once, and that nothing is left over. It returns the delay of the latest timer.
func (d *drill) finished(t *testing.T) (latest time.Duration) {
	t.Helper()
	for _, run := range names() {
		d.succeeded(t, drillEngine, run)
	}
	done, repeated := d.done(t), 0
	for _, run := range names() {
		id := drillEngine + "-" + run
		in, err := d.client.Inspect(t.Context(), id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if in.Status != orchestrator.Completed || in.Execution != 1 {
			t.Errorf("%s: execution %d is %s: %v", id, in.Execution, in.Status, in.Outcome.Failure)
		}
		latest = max(latest, checkRounds(t, id, in.Rounds))
		var taken, want []string
		if err := json.Unmarshal(in.Outcome.Output, &taken); err != nil {
			t.Errorf("%s: output %s", id, in.Outcome.Output)
		}
		for i := range steps {
			want = append(want, eventOf(run, i))
		}
		if slices.Sort(taken); !slices.Equal(taken, want) {
			t.Errorf("%s took %v", id, taken)
		}
		if len(done[id]) != 2*steps {
			t.Errorf("%s did %v", id, done[id])
		}
		for _, n := range done[id] {
			repeated += n - 1
		}
	}
	for _, queue := range []string{d.client.SignalQueue(), d.client.ScheduleQueue(), d.client.ActivityQueue(), queueOf(drillEngine)} {
		testenv.Until(t, queue+" is empty", func() bool { n, err := d.queues.Length(t.Context(), queue); return err == nil && n == 0 })
	}
	t.Logf("%d orchestrations: %d timers fired, the latest %.1f s late; %d activities ran again; %+v",
		*runs, *runs*steps, latest.Seconds(), repeated, d.counts())
	return latest
}

// succeeded waits until a run has succeeded, once.
func (d *drill) succeeded(t *testing.T, engineName, run string) {
	t.Helper()
	testenv.Until(t, "the end of "+run, func() bool {
		entries, err := d.history.Run(t.Context(), engineName, run)
		return err == nil && slices.ContainsFunc(entries, func(e engine.Entry) bool { return e.RunStatus == engine.StatusSucceeded })
	})
	if entries, err := d.history.Run(t.Context(), engineName, run); err != nil || len(entries) != 1 {
		t.Errorf("history of %s: %+v, %v", run, entries, err)
	}
	if dead, err := d.letters.Pending(t.Context(), engineName, run); err != nil || len(dead) != 0 {
		t.Errorf("dead letters of %s: %+v, %v", run, dead, err)
	}
}

// checkRounds: each timer has fired once, when it was due, and every signal has delivered its event once.
func checkRounds(t *testing.T, id string, rounds []orchestrator.Round) (latest time.Duration) {
	t.Helper()
	due, fired, raised := map[int]time.Time{}, map[int]int{}, map[string]int{}
	for _, r := range rounds {
		for _, e := range r.Decided {
			if e.Kind == "TimerScheduled" {
				due[e.Call] = e.Due
			}
		}
		for _, e := range r.Learned {
			switch e.Kind {
			case "TimerFired":
				fired[e.Call]++
				late := e.At.Sub(due[e.Call])
				if latest = max(latest, late); late < 0 {
					t.Errorf("%s: timer %d fired %v early", id, e.Call, -late)
				}
			case "EventRaised":
				raised[e.Signal]++
			}
		}
	}
	for call := range due {
		if fired[call] != 1 {
			t.Errorf("%s: timer %d fired %d times", id, call, fired[call])
		}
	}
	if len(due) != steps || len(raised) != steps {
		t.Errorf("%s: %d timers, events of %v", id, len(due), raised)
	}
	for signal, n := range raised {
		if n != 1 || !strings.Contains(signal, "/") {
			t.Errorf("%s: the event of %s was taken %d times", id, signal, n)
		}
	}
	return latest
}

// empty deletes all messages of a queue, hidden ones included, as an operator does with a tool.
func (d *drill) empty(t *testing.T, queue string) {
	t.Helper()
	name, key, _ := d.account.SharedKey()
	credential := testenv.Must(azqueue.NewSharedKeyCredential(name, key))(t)
	client, err := azqueue.NewQueueClientWithSharedKeyCredential(d.account.QueueEndpoint+"/"+queue, credential, &azqueue.ClientOptions{ClientOptions: d.account.ClientOptions(time.Minute)})
	if err == nil {
		_, err = client.ClearMessages(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}
