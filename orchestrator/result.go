package orchestrator

import (
	"encoding/json"
	"sync"
	"time"
)

// result is the outcome of an attempt, or the progress of one that is still running.
type result struct {
	of      *attempt
	attempt int // its number
	output  json.RawMessage
	err     error
	// running is set while the attempt continues, with its progress so far. After a failure, progress is the last
	// progress of the attempt.
	running  bool
	progress json.RawMessage
	// interrupted is set if the attempt did not fail, but was canceled.
	interrupted bool
	// broken is set if the attempt could not be made at all; err is then an error of the driver.
	broken bool
	// parked is set for a parked sub-orchestration, until resumeAt or, when that is zero, until a signal arrives.
	parked   bool
	resumeAt time.Time
}

// resultQueue passes the results of attempts to their driver, in the order in which they arrive. It allocates no
// memory before the first. The zero value is ready to use.
type resultQueue struct {
	mu     sync.Mutex
	queue  []result
	next   int           // index of the result that is taken next
	ready  chan struct{} // receives when results may be available; nil before the first wait
	closed bool
}

// put adds a result, unless the queue is closed.
func (q *resultQueue) put(r result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.queue = append(q.queue, r)
	q.tell()
}

// tell wakes the waiting driver. The caller holds the lock.
func (q *resultQueue) tell() {
	select {
	case q.ready <- struct{}{}:
	default: // no driver waits, or it has been notified already
	}
}

// take removes the first result.
func (q *resultQueue) take() (r result, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == len(q.queue) {
		return result{}, false
	}
	r, q.queue[q.next] = q.queue[q.next], result{}
	if q.next++; q.next == len(q.queue) {
		q.queue, q.next = q.queue[:0], 0
	}
	return r, true
}

// waiting returns a channel that receives once results are available. It may also receive without any.
func (q *resultQueue) waiting() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ready == nil {
		q.ready = make(chan struct{}, 1)
	}
	if q.next < len(q.queue) {
		q.tell()
	}
	return q.ready
}

// close drops all results, including later ones.
func (q *resultQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.queue, q.next = true, nil, 0
}
