package orchestratortest

import (
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// message is the message that starts the orchestration.
type message struct {
	after        int // the last execution before it: it asks for the next one
	acknowledged atomic.Bool
}

// recovery is the state of retries after a failure of the orchestration.
type recovery struct {
	retryAt time.Time       // when the start message is redelivered; zero for never
	retried bool            // another attempt was made
	stopped bool            // a step canceled or terminated the orchestration
	rewound map[string]bool // orchestrations that were rewound after the failure
	repeats []bool          // steps that are repeated for the next wait
}

// attempts returns the number of attempts of a Retrying orchestration since its first start message, or since it was
// rewound.
func attempts(out orchestrator.Outcome) int {
	n := 1
	for i := len(out.Earlier) - 1; i >= 0 && out.Earlier[i].Status == orchestrator.Retrying; i-- {
		n++
	}
	return n
}

// sendStart delivers the start message for the execution that follows this one.
func (s *simulation) sendStart(after int) {
	s.t.Helper()
	w := s.world
	w.retried, w.retryAt = w.retried || after > 0, time.Time{}
	w.message.after = after
	w.message.acknowledged.Store(false)
	s.begin()
}

// begin handles the start message, unless it is acknowledged.
func (s *simulation) begin() {
	s.t.Helper()
	if s.world.message.acknowledged.Load() {
		return
	}
	out := s.get()
	over := out.Ended() || out.Status == orchestrator.Retrying
	s.process.begin(over && out.Execution > s.world.message.after)
}

// retry redelivers the start message of a Retrying orchestration when it is due, or fails the orchestration.
func (s *simulation) retry() bool {
	s.t.Helper()
	w := s.world
	if !w.start.WillRetry || !s.rests() {
		return false
	}
	out := s.get()
	if out.Status != orchestrator.Retrying || w.retries() {
		w.retryAt = time.Time{}
		return false
	}
	switch {
	case attempts(out) >= w.attempts:
		s.process.giveUp()
	case w.retryAt.IsZero():
		w.retryAt = time.Now().Add(redelivery)
		time.AfterFunc(redelivery, w.notify)
		return false
	case time.Now().Before(w.retryAt):
		return false
	default:
		w.repeatSteps()
		s.sendStart(out.Execution)
	}
	return true
}

// retries reports whether a later step redelivers the start message.
func (w *world) retries() bool {
	for i, step := range w.steps {
		if step.Command == commandRetry && !w.done[i] {
			return true
		}
	}
	return false
}

// rewindFailed rewinds orchestrations that have failed because of the injected failure, once for each orchestration
// without a caller. An orchestration that a step has stopped stays stopped.
func (s *simulation) rewindFailed() (bool, error) {
	w := s.world
	if !w.failing.hasHappened() || !s.rests() {
		return false, nil
	}
	all, err := w.tree(s.t.Context())
	if err != nil {
		return false, err
	}
	for _, out := range all {
		if out.Parent != "" || out.Status != orchestrator.Failed || w.rewound[out.ID] || out.ID == id && w.stopped {
			continue
		}
		w.rewound[out.ID], w.retried = true, true
		w.repeatSteps()
		_, err := w.outside.Rewind(s.t.Context(), out.ID, "rewind-after-failure")
		return true, err
	}
	return false, nil
}

// repeatSteps repeats finished steps when they are waited for again, because the next attempt may start over and call
// other sub-orchestrations. Events of the orchestration itself are kept for it.
func (w *world) repeatSteps() {
	if w.failing == nil {
		return // the scenario has steps of its own for that
	}
	for i, step := range w.steps {
		if w.done[i] && (step.Task != "" || step.Event != "" && step.To != "") {
			w.done[i], w.repeats[i] = false, true
		}
	}
}
