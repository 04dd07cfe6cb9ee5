package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// WithHeartbeat makes an attempt of an activity fail when it does not call Heartbeat at least this often. 0 sets no
// limit.
func WithHeartbeat(d time.Duration) CallOption {
	return callOption(func(o *callOptions) { o.heartbeat = d })
}

// Heartbeat reports that a long activity is still working, and its progress. The progress is encoded as JSON like an
// output, and later attempts get it as ActivityInfo.Progress. It is recorded every Config.ProgressInterval, and when
// the attempt fails. After an error, the activity has to stop: it timed out, it was canceled, or another process runs
// its orchestration. Call Heartbeat as often as is convenient, with the context that the activity got.
func Heartbeat(ctx context.Context, progress any) error {
	a := attemptOf(ctx)
	if a == nil {
		return fmt.Errorf("heartbeat: %w", errNoActivity)
	}
	p := &a.monitor
	text, err := encodePayload(progress)
	if err == nil && len(text) > maxProgress {
		err = fmt.Errorf("%w: progress has at most %d bytes of JSON, not %d", ErrPayload, maxProgress, len(text))
	}
	if err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	if p.beat(text) {
		a.recorder.record(a, text)
	}
	return context.Cause(ctx)
}

// maxProgress bounds the progress that Heartbeat reports, in bytes of JSON, because it is sent with inputs and errors.
const maxProgress = 1 << 20

// heartbeatMonitor watches the heartbeats of one attempt.
type heartbeatMonitor struct {
	interval time.Duration // between two records of progress
	now      func() time.Time
	late     *time.Timer // cancels the attempt; nil without a limit
	within   time.Duration

	mu       sync.Mutex
	progress json.RawMessage
	recorded time.Time
}

func (p *heartbeatMonitor) begin(c Config) {
	p.interval, p.now, p.recorded = c.ProgressInterval, c.Now, c.Now()
}

// beat stores progress and reports whether it is time to record it.
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

// heartbeatError reports that an attempt sent no heartbeat in time.
type heartbeatError struct{ after time.Duration }

func (e *heartbeatError) Error() string { return fmt.Sprintf("no heartbeat within %v", e.after) }

// watch returns the context of an attempt, which ends when a heartbeat is late. Call stop when the attempt has
// returned.
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
