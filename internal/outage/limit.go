package outage

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

const (
	// firstLimit is the number of concurrent calls of a service at the start and after an outage. It doubles per round
	// trip until the first slow answer.
	firstLimit = 16
	// leastLimit and mostLimit bound it.
	leastLimit = 2
	mostLimit  = 128
	// slowAnswer is the duration of a call from which on the service is overloaded. Calls that return many rows or
	// large blobs are exempt.
	slowAnswer = time.Second
)

// limiter bounds the concurrent calls of a service by the speed of its answers: additive increase, multiplicative
// decrease. A slow service then has a short queue of requests from this process, so that none of them times out behind
// the others. Waiting calls get their turn in the order of their priority.
type limiter struct {
	mu       sync.Mutex
	limit    float64
	probing  bool // no slow answer yet: the limit grows by one per answer
	inFlight int
	waiting  waiters
	lowered  time.Time // answers to calls that began earlier do not lower the limit a second time
}

func newLimiter() *limiter { return &limiter{limit: firstLimit, probing: true} }

// acquire waits for a slot. The error is the cause of ctx.
func (l *limiter) acquire(ctx context.Context, p priority) error {
	l.mu.Lock()
	if len(l.waiting) == 0 && l.inFlight < int(l.limit) {
		l.inFlight++
		l.mu.Unlock()
		return nil
	}
	w := &waiter{priority: p, ready: make(chan struct{})}
	heap.Push(&l.waiting, w)
	l.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.index >= 0 {
		heap.Remove(&l.waiting, w.index)
	} else {
		l.inFlight--
		l.grant()
	}
	return context.Cause(ctx)
}

// sample is a finished call.
type sample struct {
	began time.Time
	// busy: the service refused the call as busy, or did not answer.
	busy bool
	// bulk: the call's duration depends on the amount of data.
	bulk bool
}

// release returns a slot and adapts the limit.
func (l *limiter) release(s sample) {
	took := time.Since(s.began)
	l.mu.Lock()
	defer l.mu.Unlock()
	used := l.inFlight
	l.inFlight--
	switch slow := took > slowAnswer && !s.bulk; {
	case (slow || s.busy) && s.began.After(l.lowered):
		factor := 0.5
		if slow && !s.busy {
			factor = min(0.9, max(0.25, float64(slowAnswer)/float64(took)))
		}
		l.limit = max(leastLimit, min(l.limit, float64(used))*factor)
		l.probing, l.lowered = false, time.Now()
	case !slow && !s.busy && used >= int(l.limit) && took <= slowAnswer/2:
		step := 1.0
		if !l.probing {
			step = 1 / l.limit
		}
		l.limit = min(mostLimit, l.limit+step)
	}
	l.grant()
}

// cancel returns the slot of a call that was not made.
func (l *limiter) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	l.grant()
}

// restart begins with few calls again, after an outage.
func (l *limiter) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit, l.probing = firstLimit, true
	l.grant()
}

// grant gives free slots to waiting calls. The caller holds mu.
func (l *limiter) grant() {
	for len(l.waiting) > 0 && l.inFlight < int(l.limit) {
		w, _ := heap.Pop(&l.waiting).(*waiter)
		l.inFlight++
		close(w.ready)
	}
}

// priority orders waiting calls: requests of people first, then the calls of the invocation that began first, so that
// work in progress ends before new work begins.
type priority struct {
	request bool
	since   time.Time
}

func (p priority) before(other priority) bool {
	if p.request != other.request {
		return p.request
	}
	return p.since.Before(other.since)
}

// waiter is a call without a slot. index is -1 once it has one.
type waiter struct {
	priority priority
	ready    chan struct{}
	index    int
}

// waiters is a heap.
type waiters []*waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(i, j int) bool { return w[i].priority.before(w[j].priority) }
func (w waiters) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

// Push adds a *waiter.
func (w *waiters) Push(x any) {
	one, _ := x.(*waiter)
	one.index = len(*w)
	*w = append(*w, one)
}

// Pop removes the last one.
func (w *waiters) Pop() any {
	last := (*w)[len(*w)-1]
	(*w)[len(*w)-1] = nil
	*w = (*w)[:len(*w)-1]
	last.index = -1
	return last
}
