package orchestrator

import (
	"encoding/json"
	"sync"
	"time"
)

// result is how an attempt ended, or the progress of one that is still running.
type result struct {
	of      *attempt
	attempt int // its number
	output  json.RawMessage
	err     error
	// running says that the attempt goes on; progress is how far it is. After a failure, progress is how far the
	// attempt came.
	running  bool
	progress json.RawMessage
	// interrupted says that the attempt did not fail, but was canceled.
	interrupted bool
	// broken says that the attempt could not be made at all; err is then an error of the driver.
	broken bool
	// parked says that a sub-orchestration is parked, until resumeAt or, when that is zero, until a signal comes.
	parked   bool
	resumeAt time.Time
}

// resultQueue takes the results of attempts to their driver, in the order in which they come. It takes no memory before
// the first. The zero value is ready to use.
type resultQueue struct {
	mu     sync.Mutex
	queue  []result
	next   int           // index of the result that is taken next
	ready  chan struct{} // receives when there may be results; nil before somebody waits
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

// tell makes who waits look. The caller holds the lock.
func (q *resultQueue) tell() {
	select {
	case q.ready <- struct{}{}:
	default: // nobody waits, or they are told already
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

// waiting returns a channel that receives once there are results. It may also receive when there are none.
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

// close drops what comes from here on.
func (q *resultQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.queue, q.next = true, nil, 0
}
