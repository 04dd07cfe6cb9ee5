package handler_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/function"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// hostLease is the time for which the host hides a received message, and hostPoll its polling interval.
	hostLease = 10 * time.Minute
	hostPoll  = time.Second
	// hostRetry is the time until the message of a failed invocation is redelivered.
	hostRetry = 30 * time.Second
	// passes bounds the time until handed-back work continues: another stopping process may receive it and pass it on
	// after a second.
	passes = 4 * time.Second
	// eventAfter is the delay of events after the start: an earlier one is retried.
	eventAfter = 10 * time.Second
	// calls is the number of activities of a part of an orchestration, one after the other.
	calls = 3
)

// ending is a way to end a process.
type ending string

const (
	restarts ending = "its host lives, and starts another one"
	moves    ending = "its host ends with it, when it has put its messages to rest"
	isLost   ending = "its host is gone already, and puts nothing to rest"
	isFrozen ending = "its host stands still, and puts nothing to rest"
)

// part is a part of an orchestration.
type part struct {
	Kind  string // call, fan, child, nap, event
	Lasts time.Duration
}

// fleet is an app in several processes, each below a host of its own, over the same stores.
type fleet struct {
	t      *testing.T
	tables *tables.Memory
	queues *queues.Memory
	blobs  *blobs.Memory
	client *orchestrator.Runtime
	hosts  sync.WaitGroup

	mu   sync.Mutex
	lost map[string]time.Duration // interrupted work, by orchestration
	cut  map[string]time.Time     // when, by activity to be repeated
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, tables: tables.NewMemory(), queues: queues.NewMemory(), blobs: blobs.NewMemory(), lost: map[string]time.Duration{}, cut: map[string]time.Time{}}
	var err error
	if f.client, err = orchestrator.New(orchestrator.Config{Tables: f.tables, Queues: f.queues, Blobs: f.blobs}); err != nil {
		t.Fatal(err)
	}
	return f
}

// job is the input of an orchestration and of its activities.
type job struct {
	Run   string
	Parts []part
	Lasts time.Duration
	Key   string
}

// app returns an app with an engine whose activities have one attempt.
func (f *fleet) app() handler.App {
	work := orchestrator.NewActivity("work", f.work, orchestrator.WithRetry(orchestrator.Retry{MaxAttempts: 1}))
	do := func(ctx *orchestrator.Context, j job, p part, key string) error {
		call := func(i int) *orchestrator.Future[int] {
			return work.Call(ctx, job{Run: j.Run, Lasts: p.Lasts / calls, Key: fmt.Sprint(key, "/", i)})
		}
		if p.Kind == "fan" {
			_, err := orchestrator.All(call(0), call(1), call(2))
			return err
		}
		for i := range calls {
			if _, err := call(i).Await(); err != nil {
				return err
			}
		}
		return nil
	}
	child := orchestrator.NewOrchestrator("child", func(ctx *orchestrator.Context, j job) (int, error) {
		return 1, do(ctx, j, part{"call", j.Lasts}, j.Key)
	})
	run := func(ctx *orchestrator.Context, r engine.Request[job]) (done int, err error) {
		for i, p := range r.Input.Parts {
			key := fmt.Sprint(r.Input.Run, "/", i)
			switch p.Kind {
			case "nap":
				err = ctx.Sleep(p.Lasts)
			case "event":
				_, err = orchestrator.Event[bool](ctx, fmt.Sprint("go-", i)).Await()
			case "child":
				_, err = child.Call(ctx, job{Run: r.Input.Run, Lasts: p.Lasts, Key: key}).Await()
			default:
				err = do(ctx, r.Input, p, key)
			}
			if err != nil {
				return done, err
			}
			done++
		}
		return done, nil
	}
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "job", Queue: "job-queue", Orchestrator: engine.Orchestrate("job", run),
			Children: []orchestrator.AnyOrchestrator{child}, Operations: []orchestrator.AnyActivity{work}}}, nil
	}}
}

// work takes some time, and records when it is interrupted and continued.
func (f *fleet) work(ctx context.Context, j job) (int, error) {
	began := time.Now()
	f.mu.Lock()
	if at, again := f.cut[j.Key]; again {
		delete(f.cut, j.Key)
		if gap := began.Sub(at); gap > passes {
			f.t.Errorf("%s went on after %v", j.Key, gap)
		}
	}
	f.mu.Unlock()
	select {
	case <-time.After(j.Lasts):
		return 1, nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut[j.Key] = time.Now()
	f.lost[j.Run] += time.Since(began)
	return 0, ctx.Err()
}

// process is a process of the app, started by the host.
type process struct {
	*handler.Handler
	f       *fleet
	listens map[string]string // functions by queue
}

func (f *fleet) start() *process {
	h, err := handler.New(f.app(), handler.Config{Tables: f.tables, Queues: f.queues, Blobs: f.blobs, Lookup: lookup(map[string]string{
		"AzureFunctionsJobHost__extensions__queues__maxDequeueCount": "8"})})
	testenv.OK(f.t, err)
	testenv.OK(f.t, h.Start(context.Background()))
	p := &process{h, f, map[string]string{}}
	for name, f := range h.Manifest().Functions {
		if queue := f.Bindings[0].QueueName; queue != "" {
			p.listens[queue] = name
		}
	}
	return p
}

// invoke delivers a message, and reports whether the app has accepted it.
func (p *process) invoke(ctx context.Context, name, text string, m queues.Message) bool {
	body, _ := json.Marshal(map[string]any{"Data": map[string]any{function.QueueParameter: text},
		"Metadata": map[string]any{"Id": m.ID, "PopReceipt": m.PopReceipt, "DequeueCount": m.DequeueCount, "InsertionTime": m.InsertedAt}})
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/"+name, strings.NewReader(string(body)))
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		p.f.t.Errorf("%s: %s", name, rec.Body)
	}
	return rec.Code == http.StatusOK
}

// host is a Functions host: it has a process, and the leases of its received messages.
type host struct {
	f       *fleet
	pulls   context.Context
	stop    context.CancelFunc
	waits   context.Context // for answers
	hangUp  context.CancelFunc
	working sync.WaitGroup

	mu      sync.Mutex
	process *process
	dead    bool
}

func (f *fleet) host() *host {
	h := &host{f: f, process: f.start()}
	h.pulls, h.stop = context.WithCancel(context.Background())
	h.waits, h.hangUp = context.WithCancel(context.Background())
	f.hosts.Go(h.pull)
	return h
}

func (h *host) pull() {
	for h.pulls.Err() == nil {
		h.mu.Lock()
		p := h.process
		h.mu.Unlock()
		for queue, name := range p.listens {
			received, err := h.f.queues.Receive(context.Background(), queue, 16, hostLease)
			if err != nil && !errors.Is(err, queues.ErrNotFound) {
				h.f.t.Error(err)
			}
			for _, m := range received {
				h.working.Go(func() { h.handle(p, queue, name, m) })
			}
		}
		select {
		case <-time.After(hostPoll):
		case <-h.pulls.Done():
		}
	}
}

func (h *host) handle(p *process, queue, name string, m queues.Message) {
	taken := p.invoke(h.waits, name, base64.StdEncoding.EncodeToString([]byte(m.Text)), m)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.dead:
	case taken:
		_ = h.f.queues.Delete(context.Background(), queue, m.ID, m.PopReceipt)
	default:
		h.f.t.Errorf("a delivery of %s failed", queue)
		_, _ = h.f.queues.Renew(context.Background(), queue, m.ID, m.PopReceipt, hostRetry)
	}
}

// end ends the process as a signal does.
func (h *host) end(how ending) {
	h.mu.Lock()
	p := h.process
	h.dead = how == isLost || how == isFrozen
	h.mu.Unlock()
	if how != restarts {
		h.stop()
	}
	if how == isLost {
		h.hangUp()
		synctest.Wait()
	}
	began := time.Now()
	if err := p.Leave(context.Background()); err != nil {
		h.f.t.Error(err)
	}
	if took := time.Since(began); took > 0 {
		h.f.t.Errorf("it took %v to hand back", took)
	}
	if how == restarts {
		h.mu.Lock()
		h.process = h.f.start()
		h.mu.Unlock()
	}
	p.Close()
}

// Processes end at random moments, in all ways of a host. Every orchestration has exactly one result, no activity and
// no message uses up an attempt, and interrupted work continues immediately: nothing waits for a lease or for a
// failure.
func TestProcessesLeaveAtRandom(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Seeds(t, 100) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			sample.Repeat(t)
			r := rand.New(rand.NewPCG(uint64(seed), 11))
			kinds, ways := []string{"call", "call", "fan", "child", "nap", "event"}, []ending{restarts, moves, isLost, isFrozen}
			runs := make([][]part, 1+r.IntN(10))
			for i := range runs {
				for range 1 + r.IntN(4) {
					runs[i] = append(runs[i], part{kinds[r.IntN(len(kinds))], time.Duration(1+r.IntN(60)) * time.Second})
				}
			}
			ends, pauses := make([]ending, 1+r.IntN(4)), []time.Duration{}
			for i := range ends {
				ends[i] = ways[r.IntN(len(ways))]
				pauses = append(pauses, time.Duration(r.IntN(40_000))*time.Millisecond)
			}
			synctest.Test(t, func(t *testing.T) { leaveAtRandom(t, runs, ends, pauses) })
		})
	}
}

func leaveAtRandom(t *testing.T, runs [][]part, ends []ending, pauses []time.Duration) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("runs %v, ends %v after pauses of %v", runs, ends, pauses)
		}
	})
	f := newFleet(t)
	hosts := []*host{f.host(), f.host()}
	for i, parts := range runs {
		f.send(fmt.Sprint("r", i), parts)
	}
	for i, how := range ends {
		time.Sleep(pauses[i])
		at := i % len(hosts)
		hosts[at].end(how)
		if how != restarts {
			hosts = append(append(hosts[:at:at], hosts[at+1:]...), f.host())
		}
	}
	for i, parts := range runs {
		f.check(fmt.Sprint("r", i), parts, len(ends))
	}
	time.Sleep(hostLease + 2*time.Minute) // the messages of a lost host are redelivered, and the heartbeat of its process expires
	f.checkAll(len(runs))
	for _, h := range hosts {
		h.stop()
	}
	f.hosts.Wait()
	for _, h := range hosts {
		h.working.Wait()
		h.process.Close()
	}
	synctest.Wait()
}

// send starts an orchestration, and sends the events that it waits for.
func (f *fleet) send(run string, parts []part) {
	body, err := json.Marshal(map[string]any{"correlationId": run, "input": job{Run: run, Parts: parts}})
	if err == nil {
		_, err = f.queues.Send(context.Background(), "job-queue", body, 0)
	}
	testenv.OK(f.t, err)
	for i, p := range parts {
		if p.Kind == "event" {
			f.hosts.Go(func() {
				time.Sleep(eventAfter + p.Lasts)
				if err := f.client.Raise(context.Background(), "job-"+run, fmt.Sprint("go-", i), true, fmt.Sprint(run, "-", i)); err != nil {
					f.t.Error(err)
				}
			})
		}
	}
}

// check waits for the end of a run, for no longer than its work takes.
func (f *fleet) check(run string, parts []part, ends int) {
	limit := time.Duration(len(parts)+ends+1) * passes
	for _, p := range parts {
		if limit += p.Lasts; p.Kind == "event" {
			limit += eventAfter
		}
	}
	for {
		out, err := f.client.Get(context.Background(), "job-"+run)
		if err == nil && out.Ended() {
			if out.Status != orchestrator.Completed || string(out.Output) != fmt.Sprint(len(parts)) {
				f.t.Errorf("%s: %s %s %v", run, out.Status, out.Output, out.Failure)
			}
			return
		}
		f.mu.Lock()
		late := time.Since(synctestBegan) - f.lost[run] - limit
		f.mu.Unlock()
		if late > 0 {
			f.t.Errorf("%s has not ended %v after it could have: %+v, %v", run, late, out, err)
			return
		}
		time.Sleep(time.Second)
	}
}

// synctestBegan is the initial time in a bubble.
var synctestBegan = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// checkAll checks that each run has one result.
func (f *fleet) checkAll(runs int) {
	page, err := engine.NewHistory(f.tables, "").List(context.Background(), engine.HistoryFilter{Engines: []string{"job"}, Limit: engine.MaxLimit})
	testenv.OK(f.t, err)
	results := map[string]int{}
	for _, e := range page.Entries {
		if e.Status != engine.StatusSucceeded {
			f.t.Errorf("history: %+v", e)
		}
		results[e.CorrelationID]++
	}
	if len(results) != runs {
		f.t.Errorf("%d runs of %d are in the history", len(results), runs)
	}
	for _, name := range []string{"job", engine.SignalEngine} {
		if letters, err := engine.NewDeadLetters(f.tables, "").List(context.Background(), engine.DeadLetterFilter{Engines: []string{name}, Limit: engine.MaxLimit}); err != nil || len(letters.DeadLetters) > 0 {
			f.t.Errorf("dead letters: %+v, %v", letters.DeadLetters, err)
		}
	}
	for _, queue := range []string{"job-queue", "orchestration-signals", "orchestration-schedules", "orchestration-activities"} {
		if n, err := f.queues.Length(context.Background(), queue); err != nil || n > 0 {
			f.t.Errorf("%d messages are left in %s, %v", n, queue, err)
		}
	}
}
