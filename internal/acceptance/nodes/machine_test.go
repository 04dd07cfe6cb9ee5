package nodes

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// machine is one node with its host: both live, freeze and die together.
type machine struct {
	*simulation
	slot, life int
	host       string
	hostLives  bool // when the machine has been killed
	leaving    bool // it was told to end
	skew       time.Duration
	ctx        context.Context // ends when the machine is killed
	die        context.CancelFunc
	runtime    *orchestrator.Runtime
	member     *member // what nodes.Node is to the machine; nil when the simulation runs without
	work       sync.WaitGroup
	booted     time.Time
	slow       time.Duration // how many times as long as others it takes

	mu          sync.Mutex
	thaw        chan struct{} // closed when the machine is not frozen
	frozen, cut bool
	late        lateness
	hand        map[*invocation]bool
	ill         []span // when something was the matter with it
}

// invocation is a message in the hands of a handler. Its run is over once the runtime has returned.
type invocation struct {
	queue, message, subject string
	since                   time.Time
	gaveUp                  time.Time // when its handler failed
}

// boot starts a machine in a slot.
func (s *simulation) boot(slot int) *machine { return s.bootUnder(slot, "") }

// bootUnder starts a handler under a host that lives, or else a machine.
func (s *simulation) bootUnder(slot int, host string) *machine {
	s.lives++
	m := &machine{host: host, simulation: s, slot: slot, life: s.lives, booted: time.Now(), slow: 1, hand: map[*invocation]bool{}, thaw: make(chan struct{})}
	close(m.thaw)
	m.ctx, m.die = context.WithCancel(s.t.Context())
	if host == "" {
		m.host = m.String()
	}
	if s.skew > 0 {
		m.skew = time.Duration(s.script.Int64N(2*int64(s.skew))) - s.skew
	}
	s.storage.mu.Lock()
	s.storage.machines[m.String()] = m
	s.storage.mu.Unlock()
	if s.nodes {
		m.member = m.enroll()
	}
	var err error
	if m.runtime, err = orchestrator.New(m.config()); err != nil {
		s.t.Fatal(err)
	}
	m.start()
	return m
}

func (m *machine) config() orchestrator.Config {
	orchestrators, activities := m.programs()
	c := orchestrator.Config{Tables: stamped{faults.Tables(observed{m.storage.tables, m.storage}, m.intercept), m}, Blobs: faults.Blobs(m.storage.blobs, m.intercept),
		Queues: faults.Queues(sending{m.storage.queues, m.storage}, m.intercept), Node: m.String(), Now: m.now, MaxInlineActivities: m.inline,
		Orchestrators: orchestrators, Activities: activities, Log: slog.New(slog.DiscardHandler)}
	if m.member != nil {
		c.Nodes = m.member
	}
	return c
}

func (m *machine) String() string { return fmt.Sprintf("m%d.%d", m.slot, m.life) }

// now is a clock that is wrong.
func (m *machine) now() time.Time { return time.Now().Add(m.skew) }

// start lets the machine's host poll the queues.
func (m *machine) start() {
	if m.member != nil {
		m.work.Go(func() { _ = m.member.Start(m.ctx) })
		m.work.Go(func() {
			<-m.ctx.Done()
			m.member.Close()
		})
	}
	for _, queue := range hostQueues() {
		m.work.Go(func() { m.poll(queue) })
	}
}

// kill ends the machine. Calls that are under way may have reached storage.
func (m *machine) kill() {
	m.die()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ill = append(m.ill, span{begin: time.Now()})
	if m.frozen {
		m.frozen = false
		close(m.thaw)
	}
}

// leave ends a machine that is told to.
func (m *machine) leave() {
	m.mu.Lock()
	m.leaving, m.ill = true, append(m.ill, span{begin: time.Now()})
	m.mu.Unlock()
	m.work.Go(func() {
		err := m.member.Leave(m.ctx)
		m.tell("%s leaves: %v", m, err)
		pause(time.Second)
		m.kill()
	})
}

func (m *machine) isLeaving() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaving
}

// freeze stops the machine: none of its calls leaves, and none returns.
func (m *machine) freeze() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frozen, m.thaw = true, make(chan struct{})
	m.ill = append(m.ill, span{begin: time.Now()})
}

func (m *machine) unfreeze() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.frozen {
		m.frozen = false
		close(m.thaw)
		m.ill[len(m.ill)-1].end = time.Now()
	}
}

// disconnect cuts the machine off from storage, or connects it again.
func (m *machine) disconnect(cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cut {
		m.ill = append(m.ill, span{begin: time.Now()})
	} else if m.cut {
		m.ill[len(m.ill)-1].end = time.Now()
	}
	m.cut = cut
}

// slowDown has services answer late. Beyond inLease, the machine may be taken for dead.
func (m *machine) slowDown(late lateness) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case late.by >= inLease:
		m.ill = append(m.ill, span{begin: time.Now()})
	case m.late.by >= inLease:
		m.ill[len(m.ill)-1].end = time.Now()
	}
	m.late = late
}

func (m *machine) lateFor(c faults.Call) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.late.of(c)
}

func (m *machine) alive() bool { return m.ctx.Err() == nil }

// healthy says that the machine lives, and that nothing is the matter with it.
func (m *machine) healthy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.alive() && !m.frozen && !m.cut && !m.leaving && m.late == lateness{}
}

func (m *machine) isCut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cut
}

// pass waits until the machine is not frozen. The error says that it is dead.
func (m *machine) pass() error {
	for {
		m.mu.Lock()
		thaw, frozen := m.thaw, m.frozen
		m.mu.Unlock()
		if !m.alive() {
			return faults.ErrCrashed
		}
		if !frozen {
			return nil
		}
		<-thaw
	}
}

// intercept is the faults.Interceptor of a machine: calls take time on both ways, and what they do and what they tell
// are two things.
func (m *machine) intercept(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	chance := m.chance(m.String(), c.Operation, c.Target, time.Now().UnixNano())
	there, back := upTo(chance, 20*time.Millisecond), upTo(chance, 20*time.Millisecond)
	if late := m.lateFor(c); late > 0 {
		before := upTo(chance, late)
		there, back = there+before, back+late-before
	}
	if err := m.pass(); err != nil {
		return err
	}
	if m.isCut() {
		return m.unreachable(ctx, chance, next)
	}
	pause(there)
	if !m.alive() && chance.IntN(2) == 0 {
		return faults.ErrCrashed // it had not left the machine
	}
	err := next(ctx)
	pause(back)
	if dead := m.pass(); dead != nil {
		return dead
	}
	if m.isCut() {
		return tables.ErrOutcomeUnknown
	}
	return err
}

// unreachable is a call of a machine that is cut off: some are refused at once, some take their time, and of a few only
// the answer is lost.
func (m *machine) unreachable(ctx context.Context, chance *rand.Rand, next func(context.Context) error) error {
	switch chance.IntN(8) {
	case 0:
		_ = next(ctx)
		pause(upTo(chance, 10*time.Second))
	case 1, 2, 3:
		pause(upTo(chance, 10*time.Second))
	default:
		pause(upTo(chance, 100*time.Millisecond))
		return tables.ErrThrottled
	}
	if err := m.pass(); err != nil {
		return err
	}
	return tables.ErrOutcomeUnknown
}

// chance is drawn from what happens and when, so that the order of goroutines decides nothing.
func (s *simulation) chance(what ...any) *rand.Rand {
	h := fnv.New64()
	_, _ = fmt.Fprint(h, what...) // a hash takes everything
	return rand.New(rand.NewPCG(s.seed, h.Sum64()))
}

func upTo(chance *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(1 + chance.Int64N(int64(d)))
}

func pause(d time.Duration) { <-time.After(d) }
