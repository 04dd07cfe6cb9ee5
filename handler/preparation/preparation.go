package preparation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

const (
	// parallel bounds the steps that run in parallel. A step is a request or a few.
	parallel = 16
	// roundLimit bounds a round when storage accepts requests and does not answer them.
	roundLimit = 30 * time.Second

	// againPause is the time for which the result of Again counts.
	againPause = 5 * time.Second

	firstDelay = time.Second
	maxDelay   = 15 * time.Second
)

// Errors of this package.
var (
	// ErrUnprepared: not everything is prepared. The text of the error names the missing parts.
	ErrUnprepared = errors.New("storage is not prepared yet")
	// ErrUntried: the missing parts are not known yet, because the first round is not over.
	ErrUntried = errors.New("the first round is not over")

	errEnded = errors.New("nobody prepares it any more")
)

// Step creates one object, or a few related ones, if they are missing. It may be repeated after a failure.
type Step = func(ctx context.Context) error

// Preparation is the preparation of a program. A nil Preparation is always prepared. It is safe for concurrent use.
type Preparation struct {
	log      *slog.Logger
	prepared chan struct{} // closed when everything is prepared
	ended    chan struct{} // closed when Run has ended because the program stops
	why      error         // the reason; read after ended is closed

	work   Work
	round  sync.Mutex // held by the one round that runs
	asked  bool       // Known has been called; guarded by round
	stages [][]Step   // remaining stages, the first in part; guarded by round
	// madeAt is when the last call of Again ended, and madeErr its error; guarded by round.
	madeAt  time.Time
	madeErr error

	mu   sync.Mutex
	last error // error of the last round
}

// Work is the work of a Preparation.
type Work struct {
	// Known reports whether any process has done Make before, for this very program: then it is skipped. nil and an
	// error mean unknown.
	Known func(ctx context.Context) (bool, error)
	// Make are the stages of the required storage, and Mark is the last of them: it records that for Known, nil for
	// none.
	Make [][]Step
	Mark Step
	// Always are the steps of every process, after the rest.
	Always []Step
}

// New makes a preparation of stages that have not run yet. The log is required.
func New(log *slog.Logger, stages ...[]Step) *Preparation {
	return NewOf(log, Work{Make: stages})
}

// NewOf makes a preparation of work that has not run yet. The log is required.
func NewOf(log *slog.Logger, w Work) *Preparation {
	return &Preparation{log: log, work: w, last: ErrUntried, prepared: make(chan struct{}), ended: make(chan struct{})}
}

// Run tries until everything is prepared (nil), or ctx ends (its cause). After that, no caller waits any longer. It
// is called once.
func (p *Preparation) Run(ctx context.Context) (err error) {
	if p == nil {
		return nil
	}
	defer func() {
		if err != nil {
			p.why = fmt.Errorf("%w: %w", errEnded, err)
		}
		close(p.ended)
	}()
	began, delay := time.Now(), firstDelay
	for rounds := 1; ; rounds++ {
		err := p.Try(ctx)
		if err == nil {
			p.log.InfoContext(ctx, "storage is prepared", "rounds", rounds, "durationMs", time.Since(began).Milliseconds())
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.log.ErrorContext(ctx, "storage is not prepared: what needs it waits, or is refused, until it is", "error", err.Error(), "rounds", rounds, "againMs", delay.Milliseconds())
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		delay = min(2*delay, maxDelay)
	}
}

// Try makes one round. The error is a *RoundError. When everything is prepared, it does nothing.
func (p *Preparation) Try(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.round.Lock()
	defer p.round.Unlock()
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, making, true), roundLimit)
	defer cancel()
	if !p.asked {
		p.asked = true
		p.stages = p.needed(ctx)
	}
	var err error
	p.stages, err = p.through(ctx, p.stages)
	p.failed(err)
	return err
}

// needed returns the stages to run: all of them, if their state is unknown.
func (p *Preparation) needed(ctx context.Context) [][]Step {
	known := false
	if p.work.Known != nil {
		err := p.guarded(ctx, func(ctx context.Context) (err error) {
			known, err = p.work.Known(ctx)
			return err
		})
		known = known && err == nil
	}
	if known {
		return [][]Step{p.work.Always}
	}
	return append(p.made(), p.work.Always)
}

// made returns the stages of the required storage.
func (p *Preparation) made() [][]Step {
	stages := slices.Clone(p.work.Make)
	if p.work.Mark != nil {
		stages = append(stages, []Step{p.work.Mark})
	}
	return stages
}

// through runs stage after stage, and returns the remaining ones. The error is a *RoundError.
func (p *Preparation) through(ctx context.Context, stages [][]Step) (left [][]Step, err error) {
	for len(stages) > 0 {
		failed, errs := p.all(ctx, stages[0])
		if len(failed) > 0 {
			return append([][]Step{failed}, stages[1:]...), &RoundError{Tried: len(stages[0]), Failures: errs}
		}
		stages = stages[1:]
	}
	return nil, nil
}

// Again creates everything once more, regardless of Known, because storage is missing. Concurrent calls, and those of
// a moment later, share the result of the first.
func (p *Preparation) Again(ctx context.Context) error {
	p.round.Lock()
	defer p.round.Unlock()
	if !p.madeAt.IsZero() && time.Since(p.madeAt) < againPause {
		return p.madeErr
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, making, true), roundLimit)
	defer cancel()
	_, err := p.through(ctx, p.made())
	p.madeAt, p.madeErr = time.Now(), err
	if err != nil {
		p.log.ErrorContext(ctx, "what is missing in storage could not be made again", "error", err.Error())
		return err
	}
	p.log.InfoContext(ctx, "storage is prepared again")
	return nil
}

// failed records the result of a round.
func (p *Preparation) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.last != nil {
		close(p.prepared)
	}
	p.last = err
}

// all runs steps in parallel, and returns the failed ones, in their order, with their errors.
func (p *Preparation) all(ctx context.Context, steps []Step) (left []Step, errs []error) {
	results := make([]error, len(steps))
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i, step := range steps {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			results[i] = p.guarded(ctx, step)
		})
	}
	group.Wait()
	for i, err := range results {
		if err != nil {
			left, errs = append(left, steps[i]), append(errs, err)
		}
	}
	return left, errs
}

// guarded converts a panic to an error: no other code recovers in this goroutine, and the process would end each
// time.
func (p *Preparation) guarded(ctx context.Context, step Step) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.ErrorContext(ctx, "a step of the preparation panicked", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v; the log has its stack", r)
		}
	}()
	return step(ctx)
}

// Await waits until everything is prepared. The error is ErrUnprepared, with the errors of the last round, when ctx
// ends before, or when the program stops: then it is also the cause of Run's context.
func (p *Preparation) Await(ctx context.Context) error {
	if p == nil {
		return nil
	}
	select {
	case <-p.prepared:
	case <-p.ended:
		return p.unlessPrepared(p.why)
	case <-ctx.Done():
		return p.unlessPrepared(context.Cause(ctx))
	}
	return nil
}

// unlessPrepared returns the reason why a caller no longer waits. Run also ends when everything is prepared.
func (p *Preparation) unlessPrepared(why error) error {
	if err := p.Err(); err != nil {
		return fmt.Errorf("%w (%w)", err, why)
	}
	return nil
}

// Err returns nil when everything is prepared, and otherwise ErrUnprepared with the errors of the last round.
func (p *Preparation) Err() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnprepared, p.last)
}
