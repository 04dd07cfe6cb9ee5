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
	leaving    bool // shutting down
	skew       time.Duration
	ctx        context.Context // ends when the machine is killed
	die        context.CancelFunc
	runtime    *orchestrator.Runtime
	member     *member // nil when the simulation runs without nodes
	work       sync.WaitGroup
	booted     time.Time
	slow       time.Duration // slowdown factor of its calls

	mu          sync.Mutex
	thaw        chan struct{} // closed when the machine is not frozen
	frozen, cut bool
	late        lateness
	hand        map[*invocation]bool
	ill         []span // times of its troubles
}

// invocation is a message in a handler. Its run is over once the runtime has returned.
type invocation struct {
	queue, message, subject string
	since                   time.Time
	gaveUp                  time.Time // when its handler failed
}

// boot starts a machine in a slot.
func (s *simulation) boot(slot int) *machine { return s.bootUnder(slot, "") }

// bootUnder starts a handler under a living host, or else a machine.
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

// now returns the time of the machine's clock, which may be wrong.
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

// kill ends the machine. Pending calls may have reached storage.
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

// leave shuts a machine down.
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

// freeze stops the machine: no call leaves it or returns.
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

// disconnect disconnects the machine from storage, or reconnects it.
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

// healthy reports whether the machine lives without trouble.
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

// pass waits until the machine is not frozen. The error means that it is dead.
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

// intercept is the faults.Interceptor of a machine: calls take time on both ways, and may take effect without an
// answer.
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

// unreachable handles a call of a disconnected machine: some fail immediately, some later, and a few lose only the
// answer.
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

// chance is seeded by event and time, so the order of goroutines does not matter.
func (s *simulation) chance(what ...any) *rand.Rand {
	h := fnv.New64()
	_, _ = fmt.Fprint(h, what...) // a hash never fails
	return rand.New(rand.NewPCG(s.seed, h.Sum64()))
}

func upTo(chance *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(1 + chance.Int64N(int64(d)))
}

func pause(d time.Duration) { <-time.After(d) }
