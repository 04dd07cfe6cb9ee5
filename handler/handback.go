package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vibedata/roundhouse/handler/trigger"
	"github.com/vibedata/roundhouse/internal/outage"
)

const (
	// handBackTime bounds the time to commit and requeue running work when the program stops. It is longer than the
	// grace period of activities; work that takes longer is left to the process that takes over.
	handBackTime = 3 * time.Second
	// linger is the time for which the server still answers after that: a live host receives requeued messages
	// immediately, and an invocation that cannot reach the process has failed.
	linger = 300 * time.Millisecond
	// leaveTime bounds the notification of the other processes.
	leaveTime = 3 * time.Second
)

// errStillRunning: invocations still run after handBackTime.
var errStillRunning = errors.New("invocations still run")

// gate is closed when the program stops.
type gate interface {
	trigger.Gate
	// Close admits no more work, ends the contexts of admitted work with a cause, and waits until none is left or ctx
	// ends. It returns how much still runs.
	Close(ctx context.Context, cause error) (running int)
}

// handBack ends the work of the program, so that other processes continue it immediately: nothing new begins, running
// work is committed and its messages are requeued, and the others are notified. The error names the work that could
// not be handed back, which others find later.
func (p program) handBack(ctx context.Context, log *slog.Logger) error {
	began, running := time.Now(), 0
	if p.Gate != nil {
		ctx, cancel := context.WithTimeout(ctx, handBackTime)
		defer cancel()
		running = p.Gate.Close(ctx, trigger.ErrStopping)
	}
	var errs []error
	if running > 0 {
		errs = append(errs, fmt.Errorf("%d %w after %v", running, errStillRunning, handBackTime))
	}
	if p.Leave != nil { // it does not wait for unavailable storage: the others find out later
		ctx, cancel := context.WithTimeout(outage.Hurry(ctx), leaveTime)
		defer cancel()
		errs = append(errs, p.Leave(ctx))
	}
	err := errors.Join(errs...)
	if err != nil {
		return fmt.Errorf("hand back the work: %w", err)
	}
	log.InfoContext(ctx, "the work is handed back", "durationMs", time.Since(began).Milliseconds())
	return nil
}
