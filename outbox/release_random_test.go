package outbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/internal/faults"
)

// fate is the trouble of a node: it is killed, or suspended for a while.
type fate struct {
	At    time.Duration
	Kill  bool
	Still time.Duration
	// Seen is the time until another node takes it over; Ended means that its end is known.
	Seen  time.Duration
	Ended bool
}

// over returns the end of the trouble.
func (f fate) over() time.Duration { return f.At + max(f.Still, f.Seen) }

// addition is a message of the random test, with the time of its addition.
type addition struct {
	At     time.Duration
	Tenant string
	Key    string
}

// drawFleet draws the troubles of all nodes but the first, and the messages.
func drawFleet(rt *rapid.T) (fates []fate, list []addition) {
	within := func(label string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(rt, label)) * time.Second
	}
	for range rapid.IntRange(1, 3).Draw(rt, "lost") {
		f := fate{At: within("at", 30), Kill: rapid.Bool().Draw(rt, "kill"), Seen: within("seen", 15)}
		if f.Kill {
			f.Ended = rapid.Bool().Draw(rt, "ended")
		} else {
			f.Still = within("still", 120)
		}
		fates = append(fates, f)
	}
	for range rapid.IntRange(1, 12).Draw(rt, "messages") {
		list = append(list, addition{At: within("added", 20), Tenant: rapid.SampledFrom([]string{"acme", "zeta"}).Draw(rt, "tenant"),
			Key: rapid.SampledFrom([]string{"", "k", "k", "l"}).Draw(rt, "key")})
	}
	return fates, list
}

// fleetNode is a node of the random test. Its calls wait while it is suspended, and get no answers after its kill.
type fleetNode struct {
	testNode
	process *process
	killed  chan struct{}
	thaw    chan struct{} // nil unless suspended
}

func (n *fleetNode) dead() bool {
	select {
	case <-n.killed:
		return true
	default:
		return false
	}
}

// freeze suspends the node, and returns a function that resumes it.
func (n *fleetNode) freeze() (thaw func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.thaw = make(chan struct{})
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		close(n.thaw)
		n.thaw = nil
	}
}

func (n *fleetNode) gate() {
	for {
		n.mu.Lock()
		thaw := n.thaw
		n.mu.Unlock()
		if thaw == nil {
			return
		}
		<-thaw
	}
}

func (n *fleetNode) Confirm(ctx context.Context, name string) error {
	n.gate()
	return n.testNode.Confirm(ctx, name)
}

func (n *fleetNode) intercept(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
	n.gate()
	if n.dead() {
		return faults.ErrCrashed
	}
	return next(ctx)
}

// fleet is shared by the nodes of the random test: its destination checks the order of events.
type fleet struct {
	w     *world
	t     *testing.T
	began time.Time

	mu      sync.Mutex
	random  *rand.Rand
	highest map[string]int // highest number with a started delivery, by tenant and order key
	first   map[int]time.Duration
	times   map[int]int
}

func numberOf(e Event) (n int) {
	_, _ = fmt.Sscanf(string(e.Payload), `{"n":%d}`, &n) // as message1 writes it
	return n
}

// step records the start or end of a delivery: no later one of its order key may have started.
func (f *fleet) step(n *fleetNode, e Event, what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, number := e.TenantID+"/"+e.OrderKey, numberOf(e)
	if e.OrderKey != "" && f.highest[key] > number {
		f.t.Errorf("after %v, a delivery of %d by %s %s, and one of %d of its order key has begun", time.Since(f.began), number, n.Name(), what, f.highest[key])
	}
	f.highest[key] = max(f.highest[key], number)
	if what == "ends" {
		if f.times[number]++; f.times[number] == 1 {
			f.first[number] = time.Since(f.began)
		}
	}
}

// took draws the duration of a delivery: short, or almost too long.
func (f *fleet) took() time.Duration {
	if f.random.IntN(2) > 0 {
		return time.Duration(f.random.Int64N(int64(time.Second)))
	}
	return f.w.options.DeliveryTimeout - time.Second - time.Duration(f.random.Int64N(int64(5*time.Second)))
}

// deliver takes slightly less than the timeout, even if its node is suspended meanwhile.
func (f *fleet) deliver(ctx context.Context, n *fleetNode, e Event) error {
	f.step(n, e, "begins")
	f.mu.Lock()
	end := time.NewTimer(f.took())
	f.mu.Unlock()
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-n.killed:
		return faults.ErrCrashed
	}
	f.step(n, e, "ends")
	return nil
}

// start adds a node.
func (f *fleet) start(name string) *fleetNode {
	n := &fleetNode{testNode: testNode{name: name}, killed: make(chan struct{})}
	f.w.nodes = n
	defer func() { f.w.nodes = nil }()
	sink := transport(func(ctx context.Context, e Event) error { return f.deliver(ctx, n, e) })
	n.process = f.w.intercepted(f.t, n.intercept, []Route{{EventType: "*", Destination: "sink"}}, Destinations{"sink": sink})
	return n
}

// work lets a node sweep, from a time on, until ctx ends or it is killed.
func (n *fleetNode) work(ctx context.Context, after time.Duration) {
	pause(ctx, after)
	for ctx.Err() == nil && !n.dead() {
		_, _ = n.process.dispatcher.Sweep(ctx) // failures are repeated
		pause(ctx, time.Second)
	}
}

// suffer applies a trouble to a node, and lets another one take it over.
func (f *fleet) suffer(n, taker *fleetNode, of fate) {
	pause(f.t.Context(), of.At)
	var all sync.WaitGroup
	if of.Kill {
		close(n.killed)
	} else {
		thaw := n.freeze()
		all.Go(func() {
			pause(f.t.Context(), of.Still)
			thaw()
		})
	}
	pause(f.t.Context(), of.Seen)
	name := n.Name()
	n.fence(name + " again")
	if _, err := taker.process.dispatcher.Release(f.t.Context(), name, of.Ended); err != nil {
		f.t.Error(err)
	}
	all.Wait()
}

// Nodes are killed, or suspended until other nodes have taken them over. Every event is delivered, soon, and those of
// an order key are delivered in their order, deliveries of a fenced node included.
func TestReleaseAtRandom(t *testing.T) {
	t.Parallel()
	// soon is shorter than a claim: the time of a sweep, of earlier deliveries, and of a failed confirmation's pause.
	const soon = 90 * time.Second
	const slots = 16
	rapid.Check(t, func(rt *rapid.T) {
		fates, list := drawFleet(rt)
		perDestination := rapid.SampledFrom([]int{1, slots}).Draw(rt, "slots")
		rest := time.Duration(rapid.IntRange(0, 20).Draw(rt, "survivor rests")) * time.Second
		seed := rapid.Uint64().Draw(rt, "seed")
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.clock = time.Time{} // the bubble's
			w.options.MaxPerDestination = perDestination
			f := &fleet{w: w, t: t, began: time.Now(), random: rand.New(rand.NewPCG(seed, 0)), highest: map[string]int{}, first: map[int]time.Duration{}, times: map[int]int{}}
			ctx, stop := context.WithCancel(t.Context())
			var all, suffering sync.WaitGroup
			survivor := f.start("survivor")
			all.Go(func() { survivor.work(ctx, rest) })
			var over time.Duration
			for i, of := range fates {
				n := f.start(fmt.Sprint("node-", i))
				all.Go(func() { n.work(ctx, 0) })
				suffering.Go(func() { f.suffer(n, survivor, of) })
				over = max(over, of.over())
			}
			added := f.addAll(list)
			suffering.Wait()
			pause(ctx, 10*time.Minute)
			stop()
			all.Wait()
			for i, m := range list {
				switch limit := max(over, added[i]) + soon; {
				case f.times[i] == 0:
					t.Errorf("%d was not delivered", i)
				case f.times[i] > 1+len(fates):
					t.Errorf("%d was delivered %d times with %d lost nodes", i, f.times[i], len(fates))
				case m.Key == "" && perDestination == slots && f.first[i] > limit:
					t.Errorf("%d was delivered after %v, not within %v", i, f.first[i], limit)
				}
			}
			for _, tenant := range []string{"acme", "zeta"} {
				if n := w.check(t, tenant)[StatusPending]; n > 0 {
					t.Errorf("%d of %s are pending", n, tenant)
				}
			}
		})
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// addAll adds messages in their order, each at its time at the earliest, and returns the times of the additions.
func (f *fleet) addAll(list []addition) (added []time.Duration) {
	p := f.w.process(f.t, nil)
	for i, a := range list {
		pause(f.t.Context(), a.At-time.Since(f.began))
		m := message1(i)
		m.TenantID, m.OrderKey = a.Tenant, a.Key
		p.add(f.t, m)
		added = append(added, time.Since(f.began))
	}
	return added
}
