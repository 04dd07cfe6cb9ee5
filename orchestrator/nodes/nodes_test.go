package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/sample"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

const queue = "schedules"

// world is the storage that some nodes share.
type world struct {
	tables tables.Store
	queues queues.Store

	mu    sync.Mutex
	taken []nodes.Lost
	fail  error // the result of takeovers
}

func newWorld(t *testing.T) *world {
	w := &world{tables: tables.NewMemory(), queues: queues.NewMemory()}
	if err := errors.Join((hostlock.Locks{Tables: w.tables}).CreateTable(t.Context()), w.queues.CreateQueue(t.Context(), queue)); err != nil {
		t.Fatal(err)
	}
	return w
}

// process is a node whose requests can be counted and kept from storage.
type process struct {
	*nodes.Node
	mu      sync.Mutex
	calls   int
	refused error
	late    func() time.Duration // delay of a request and of its response; nil for none
	unheard int                  // the number of further requests that are carried out without a response
}

func (p *process) intercept(ctx context.Context, _ faults.Call, do func(context.Context) error) error {
	p.mu.Lock()
	refused, unheard := p.refused, p.unheard > 0
	p.unheard = max(0, p.unheard-1)
	p.calls++
	late := p.late
	p.mu.Unlock()
	if late != nil {
		time.Sleep(late())
		defer func() { time.Sleep(late()) }()
	}
	switch {
	case unheard:
		return errors.Join(errDown, do(ctx))
	case refused != nil:
		return refused
	}
	return do(ctx)
}

// unhear lets the next request of the process through, but not its response.
func (p *process) unhear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unheard = 1
}

// refuse keeps the process from storage; nil reconnects it.
func (p *process) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = err
}

// count returns the number of its requests since the last count.
func (p *process) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.calls
	p.calls = 0
	return n
}

func (w *world) process(t *testing.T, name string, change ...func(*nodes.Config)) *process {
	t.Helper()
	p := &process{}
	c := nodes.Config{Tables: faults.Tables(w.tables, p.intercept), Queues: faults.Queues(w.queues, p.intercept), Queue: queue, Name: name,
		TakeOver: func(_ context.Context, l nodes.Lost, begun func(int)) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.fail != nil {
				return w.fail
			}
			w.taken = append(w.taken, l)
			begun(len(l.Hand.Orchestrations))
			return nil
		}}
	for _, f := range change {
		f(&c)
	}
	var err error
	if p.Node, err = nodes.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// deliver delivers the visible messages of the queue to a node, as its host does, and deletes the handled ones.
func (w *world) deliver(t *testing.T, p *process) (delivered int) {
	t.Helper()
	found, err := w.queues.Receive(t.Context(), queue, queues.MaxReceive, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		handled, err := p.Receive(t.Context(), queues.Decode(m.Text))
		if !handled {
			t.Fatalf("%s is no sign of life to node %s", queues.Decode(m.Text), p.Name())
		}
		if err != nil {
			_, err = w.queues.Renew(t.Context(), queue, m.ID, m.PopReceipt, 30*time.Second)
		} else {
			err = w.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return len(found)
}

// takenFrom returns the nodes that were taken over, in order.
func (w *world) takenFrom() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, l := range w.taken {
		names = append(names, l.Node)
	}
	return names
}

func hold(t *testing.T, p *process, id string) {
	t.Helper()
	p.Hold(id)
	if err := p.Confirm(t.Context(), p.Name()); err != nil {
		t.Fatal(err)
	}
}

var errDown = tables.ErrOutcomeUnknown

// Another node takes over from one that does not renew its sign of life, once, and knows its work.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.process(t, "a"), w.process(t, "b")
		hold(t, a, "order-1")
		hold(t, a, "order-2")
		a.HoldMessage(nodes.Message{Queue: queue, ID: "none", PopReceipt: "none"})
		name := a.Name()
		time.Sleep(25 * time.Second)
		if n := w.deliver(t, b); n != 0 {
			t.Fatalf("%d messages although the node lives", n)
		}
		a.refuse(errDown)
		began := time.Now()
		for w.deliver(t, b) == 0 {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > nodes.DefaultDeath+2*time.Second {
			t.Errorf("it took %v", took)
		}
		if diff := cmp.Diff([]string{name}, w.takenFrom()); diff != "" {
			t.Fatalf("taken over (-want +got):\n%s", diff)
		}
		l := w.taken[0]
		if diff := cmp.Diff([]string{"order-1", "order-2"}, l.Hand.Orchestrations); diff != "" || l.By != b.Name() || l.HostLives || l.Hand.Count != 3 || len(l.Hand.Messages) != 1 {
			t.Errorf("%+v", l)
		}
		a.refuse(nil)
		if err := a.Confirm(t.Context(), name); !errors.Is(err, nodes.ErrFenced) {
			t.Errorf("the node that was taken over goes on: %v", err)
		}
		if err := a.Confirm(t.Context(), a.Name()); err != nil || a.Name() == name || a.Counts().Fenced != 1 {
			t.Errorf("with new work as %s: %v, %+v", a.Name(), err, a.Counts())
		}
		if c := b.Counts(); c.Takeovers != 1 || c.TakenOver != 2 {
			t.Errorf("%+v", c)
		}
		infos, err := nodes.List(t.Context(), w.tables, "")
		at := slices.IndexFunc(infos, func(i nodes.Info) bool { return i.Name == name })
		if err != nil || at < 0 || infos[at].State != nodes.StateTaken || infos[at].TakenBy != b.Name() || !infos[at].Finished || infos[at].TakenOver != 2 {
			t.Errorf("%+v, %v", infos, err)
		}
	})
}

// Work that a node releases while it cannot reach storage is still in progress to the others, even if a renewal
// succeeds without a response: its host may be cut off as well. A node that has reconnected no longer names it.
func TestGivenUp(t *testing.T) {
	for _, comesBack := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.process(t, "a"), w.process(t, "b")
			release := a.Hold("order-1")
			hold(t, a, "order-2")
			a.refuse(errDown)
			time.Sleep(nodes.DefaultInterval + time.Second)
			release()
			a.unhear()
			time.Sleep(time.Second)
			want := []string{"order-1", "order-2"}
			if comesBack {
				a.refuse(nil)
				time.Sleep(3 * nodes.DefaultInterval)
				a.refuse(errDown)
				want = want[1:]
			}
			time.Sleep(nodes.DefaultDeath + time.Second)
			w.deliver(t, b)
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.taken) != 1 || !slices.Equal(slices.Sorted(slices.Values(w.taken[0].Hand.Orchestrations)), want) {
				t.Errorf("comes back %v: taken over %+v, want %v", comesBack, w.taken, want)
			}
		})
	}
}

// After an outage all nodes are late. The living ones renew their signs, and no node takes over.
func TestOutageIsNoDeath(t *testing.T) {
	for seconds := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.process(t, "a"), w.process(t, "b")
			hold(t, a, "order-1")
			hold(t, b, "order-2")
			time.Sleep(5 * time.Second)
			a.refuse(errDown)
			b.refuse(errDown)
			time.Sleep(time.Duration(seconds) * time.Second)
			a.refuse(nil)
			b.refuse(nil)
			for range 30 {
				var both sync.WaitGroup
				for _, p := range []*process{a, b} {
					both.Go(func() { w.deliver(t, p) })
				}
				both.Wait()
				time.Sleep(time.Second)
			}
			if taken := w.takenFrom(); len(taken) != 0 {
				t.Errorf("an outage of %d s: %v", seconds, taken)
			}
		})
	}
}

// A node with requests that reach storage within 5 s is never considered dead, however late the responses are.
func TestSlowStorageIsNoDeath(t *testing.T) {
	t.Parallel()
	for _, seed := range sample.Seeds(t, 40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(seed), 34))
				w := newWorld(t)
				slow, quick := w.process(t, "slow"), w.process(t, "quick")
				hold(t, slow, "order-1")
				name, most := slow.Name(), int64(nodes.DefaultDeath-nodes.DefaultInterval-100*time.Millisecond)
				var drawing sync.Mutex
				slow.mu.Lock()
				slow.late = func() time.Duration {
					drawing.Lock()
					defer drawing.Unlock()
					return time.Duration(random.Int64N(most))
				}
				slow.mu.Unlock()
				for range 10 * 60 * 5 {
					w.deliver(t, quick)
					time.Sleep(200 * time.Millisecond)
				}
				if slow.Name() != name || len(w.takenFrom()) != 0 {
					t.Errorf("the node is %s by now, and these were taken over: %v", slow.Name(), w.takenFrom())
				}
			})
		})
	}
}

// A takeover in progress is left to its node, however long it lasts and whichever node gets the sign of life again.
// One that failed is repeated, with its Begun time.
func TestTakeoverInProgress(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"it succeeds": nil, "it fails": errors.New("storage is slow")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				lost, second := w.process(t, "lost"), w.process(t, "second")
				var begun time.Time
				first := w.process(t, "first", func(c *nodes.Config) {
					c.TakeOver = func(_ context.Context, l nodes.Lost, done func(int)) error {
						begun = time.Now()
						time.Sleep(20 * time.Minute)
						if failure == nil {
							done(1)
						}
						return failure
					}
				})
				hold(t, lost, "order-1")
				lost.refuse(errDown)
				time.Sleep(nodes.DefaultDeath + time.Second)
				lost.Close()
				sign, err := w.queues.Receive(t.Context(), queue, 1, 10*time.Minute)
				if err != nil || len(sign) != 1 {
					t.Fatalf("receive the sign of life: %d messages, %v", len(sign), err)
				}
				var working sync.WaitGroup
				working.Go(func() {
					if _, err := first.Receive(t.Context(), queues.Decode(sign[0].Text)); !errors.Is(err, failure) {
						t.Errorf("first takeover: %v, want %v", err, failure)
					}
				})
				for range 18 {
					time.Sleep(time.Minute)
					testenv.OK(t, second.Sweep(t.Context()))
					_, err := second.Receive(t.Context(), queues.Decode(sign[0].Text))
					testenv.OK(t, err)
				}
				if taken := w.takenFrom(); len(taken) != 0 {
					t.Errorf("taken over a second time while the first takeover is in progress: %v", taken)
				}
				working.Wait()
				testenv.OK(t, second.Sweep(t.Context()))
				w.mu.Lock()
				defer w.mu.Unlock()
				switch {
				case failure == nil && len(w.taken) != 0:
					t.Errorf("taken over after the takeover had finished: %+v", w.taken)
				case failure != nil && (len(w.taken) != 1 || w.taken[0].Begun.After(begun)):
					t.Errorf("taken over after a failure: %+v, want one that begun at %v or earlier", w.taken, begun)
				}
			})
		})
	}
}

// The cost of a node: at most 8 requests a minute with work, however it arrives, and none without.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.process(t, "a")
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.count()
		time.Sleep(time.Hour)
		if n := a.count(); n != 0 {
			t.Errorf("%d requests in an hour without work", n)
		}
		var minutes []int // requests in each second
		for second := range 3600 {
			if second%7 == 0 && second/600%2 == 0 || second%97 == 0 { // often, and now and then
				release := a.Hold(fmt.Sprint("order-", second))
				if err := a.Confirm(t.Context(), a.Name()); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(time.Duration(second%5)*time.Second, release)
			}
			time.Sleep(time.Second)
			minutes = append(minutes, a.count())
		}
		most := 0
		for i := range len(minutes) - 60 {
			sum := 0
			for _, n := range minutes[i : i+60] {
				sum += n
			}
			most = max(most, sum)
		}
		if most < 6 || most > 8 {
			t.Errorf("%d requests in a minute", most)
		}
		time.Sleep(2 * time.Minute)
		a.count()
		time.Sleep(time.Hour)
		if n := a.count(); n != 0 {
			t.Errorf("%d requests in an hour after the work", n)
		}
		if n, err := w.queues.Length(t.Context(), queue); n != 0 || err != nil {
			t.Errorf("%d messages are left, %v", n, err)
		}
	})
}

// An interrupted takeover is finished by the next node that takes over, repeatedly.
func TestTakeoverOfATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fail = errors.New("the process dies")
		var chain []*process
		for i := range 4 {
			p := w.process(t, fmt.Sprint("node-", i))
			hold(t, p, fmt.Sprint("order-", i))
			if i > 0 {
				w.deliver(t, p) // and it dies during the takeover
			}
			p.refuse(errDown)
			chain = append(chain, p)
			time.Sleep(20 * time.Second)
		}
		w.fail = nil
		last := w.process(t, "last")
		w.deliver(t, last)
		got := w.takenFrom()
		slices.Sort(got)
		var want []string
		for _, p := range chain {
			want = append(want, p.Name())
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
			t.Errorf("taken over (-want +got):\n%s", diff)
		}
	})
}

// A node that leaves lets others take over immediately the work that it has not returned, and commits nothing
// afterwards.
func TestLeave(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.process(t, "a"), w.process(t, "b")
			release := a.Hold("order-1")
			name := a.Name()
			if err := a.Confirm(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			if !busy {
				release()
			}
			if err := a.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := a.Confirm(t.Context(), name); !errors.Is(err, nodes.ErrFenced) {
				t.Errorf("it commits: %v", err)
			}
			began := time.Now()
			delivered := w.deliver(t, b)
			if taken := w.takenFrom(); (delivered == 1) != busy || len(taken) != delivered || time.Since(began) > 0 {
				t.Errorf("busy %v: %d messages, taken over %v after %v", busy, delivered, taken, time.Since(began))
			}
			infos, err := nodes.List(t.Context(), w.tables, "")
			if err != nil || len(infos) == 0 || busy == (infos[0].State == nodes.StateGone) && infos[0].Name == name {
				t.Errorf("busy %v: %+v, %v", busy, infos, err)
			}
		})
	}
}

// A process takes over immediately from the one that its host had started before, and not from living ones.
func TestSameHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		under := func(host string, pid int, alive ...int) func(*nodes.Config) {
			return func(c *nodes.Config) {
				c.Host, c.PID, c.Alive = host, pid, func(pid int) bool { return slices.Contains(alive, pid) }
			}
		}
		dead, living, elsewhere := w.process(t, "dead", under("h", 10)), w.process(t, "living", under("h", 11, 10)), w.process(t, "elsewhere", under("g", 12))
		for _, p := range []*process{dead, living, elsewhere} {
			hold(t, p, "order-"+p.Name())
			if err := p.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		dead.refuse(errDown)
		next := w.process(t, "next", under("h", 13, 11, 13))
		if err := next.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{dead.Name()}, w.takenFrom()); diff != "" {
			t.Errorf("taken over (-want +got):\n%s", diff)
		}
		if !w.taken[0].HostLives {
			t.Error("it is not said that the host lives")
		}
		time.Sleep(20 * time.Second)
		w.deliver(t, next)
		if n := len(w.takenFrom()); n != 1 {
			t.Errorf("taken over %d times", n)
		}
	})
}

// The sweep takes over when the message is lost, and not from a node without work.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, idle, b := w.process(t, "a"), w.process(t, "idle"), w.process(t, "b")
		hold(t, a, "order-1")
		time.Sleep(2 * time.Minute)
		a.refuse(errDown)
		if err := idle.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if found, err := w.queues.Receive(t.Context(), queue, 1, time.Hour); err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		for range 3 {
			if err := b.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
		}
		if diff := cmp.Diff([]string{a.Name()}, w.takenFrom()); diff != "" {
			t.Errorf("taken over (-want +got):\n%s", diff)
		}
		a.Close()
		time.Sleep(25 * time.Hour)
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if infos, err := nodes.List(t.Context(), w.tables, ""); err != nil || len(infos) != 1 || infos[0].Name != b.Name() {
			t.Errorf("rows a day later: %+v, %v", infos, err)
		}
	})
}
