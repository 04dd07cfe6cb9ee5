package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// WithHeartbeat lets each attempt of an activity fail that does not call Heartbeat at least so often. 0 does not.
func WithHeartbeat(d time.Duration) CallOption {
	return callOption(func(o *callOptions) { o.heartbeat = d })
}

// Heartbeat tells that a long activity goes on, and how far it is: progress travels as JSON, like an output, and is what
// ActivityInfo.Progress gives to the attempts that follow. It is recorded now and then (Config.ProgressInterval) and when
// the attempt fails. The error says that the activity shall stop: its time is over, it was canceled, or another process
// has its orchestration. Call it as often as is convenient, with the context that the activity got.
func Heartbeat(ctx context.Context, progress any) error {
	a := attemptOf(ctx)
	if a == nil {
		return fmt.Errorf("heartbeat: %w", errNoActivity)
	}
	p := a.monitor
	text, err := encodePayload(progress)
	if err == nil && len(text) > maxProgress {
		err = fmt.Errorf("%w: progress has at most %d bytes of JSON, not %d", ErrPayload, maxProgress, len(text))
	}
	if err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	if p.beat(text) {
		p.record(text)
	}
	return context.Cause(ctx)
}

// maxProgress bounds what Heartbeat tells, in bytes of JSON: it travels beside inputs and errors.
const maxProgress = 1 << 20

// heartbeatMonitor is one attempt as its heartbeats see it.
type heartbeatMonitor struct {
	record   func(progress json.RawMessage)
	interval time.Duration // between records
	now      func() time.Time
	late     *time.Timer // ends the attempt; nil for none
	within   time.Duration

	mu       sync.Mutex
	progress json.RawMessage
	recorded time.Time
}

// beat takes note of progress and says whether it is time to record it.
func (p *heartbeatMonitor) beat(progress json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late != nil && p.late.Stop() {
		p.late.Reset(p.within)
	}
	p.progress = progress
	now := p.now()
	if now.Sub(p.recorded) < p.interval {
		return false
	}
	p.recorded = now
	return true
}

func (p *heartbeatMonitor) last() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress
}

// heartbeatError says that an attempt went silent.
type heartbeatError struct{ after time.Duration }

func (e *heartbeatError) Error() string { return fmt.Sprintf("no heartbeat within %v", e.after) }

// watch gives the context of an attempt its pulse. stop has to be called when the attempt has returned.
func (p *heartbeatMonitor) watch(ctx context.Context, within time.Duration) (_ context.Context, stop func()) {
	if within == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	p.within = within
	p.late = time.AfterFunc(within, func() { cancel(&heartbeatError{within}) })
	return ctx, func() {
		p.late.Stop()
		cancel(nil)
	}
}
