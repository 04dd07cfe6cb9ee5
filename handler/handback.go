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
	// handBackTime bounds the time in which running work is committed and requeued when the program stops. It is longer than the
	// grace period of activities; slower work is left to the process that takes over.
	handBackTime = 3 * time.Second
	// linger is how long the server still answers after that: a host that lives takes at once what was put back, and an invocation
	// that cannot reach the process any more has failed.
	linger = 300 * time.Millisecond
	// leaveTime bounds how long telling the others may take.
	leaveTime = 3 * time.Second
)

// errStillRunning: invocations run on after handBackTime.
var errStillRunning = errors.New("invocations still run")

// gate is what the program closes when it stops.
type gate interface {
	trigger.Gate
	// Close lets nothing in any more, ends the contexts of what is inside with a cause, and waits until nothing is, or ctx ends. It
	// gives how much still runs.
	Close(ctx context.Context, cause error) (running int)
}

// handBack ends the work of the program, so that other processes go on with it at once: nothing begins, what runs is committed and
// its messages are put back, and the others are told. The error says what could not be handed back, which others find in time.
func (p program) handBack(ctx context.Context, log *slog.Logger) error {
	began, running := time.Now(), 0
	if p.Gate != nil {
		ctx, cancel := context.WithTimeout(ctx, handBackTime)
		defer cancel()
		running = p.Gate.Close(ctx, trigger.ErrStopping)
	}
	var errs []error
	if running > 0 {
		errs = append(errs, fmt.Errorf("%d of them after %v: %w", running, handBackTime, errStillRunning))
	}
	if p.Leave != nil { // nobody waits for a storage that is away: the others find out in time
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
