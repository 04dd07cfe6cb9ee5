package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/vibedata/roundhouse/internal/outage"
)

// These are the first and the longest pause between two polls of Wait.
const (
	waitFirst = 50 * time.Millisecond
	waitMost  = 2 * time.Second
)

// Wait waits until an orchestration has ended, and returns its outcome. It polls the status row, one transaction each
// time. ErrNotFound means that the orchestration does not exist. When ctx ends, Wait returns the current state with
// the error of ctx.
func (r *Runtime) Wait(ctx context.Context, id string) (Outcome, error) {
	for next := waitFirst; ; next = min(2*next, waitMost) {
		s, err := r.Status(ctx, id)
		switch {
		case err == nil && s.Ended():
			return r.Get(ctx, id)
		case err != nil && ctx.Err() == nil:
			return Outcome{}, err
		}
		if err := pause(ctx, next/2+rand.N(next)); err == nil {
			continue
		}
		look, cancel := outage.Finish(ctx, storeTimeout)
		defer cancel()
		out, err := r.Get(look, id)
		return out, errors.Join(fmt.Errorf("wait for orchestration %s: %w", id, context.Cause(ctx)), err)
	}
}
