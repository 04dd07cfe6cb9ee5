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
	// parallel is how many steps run at the same time. A step is a request or a few.
	parallel = 16
	// roundLimit bounds a round when storage takes requests and does not answer them.
	roundLimit = 30 * time.Second

	// againPause is how long what Again has found counts.
	againPause = 5 * time.Second

	firstDelay = time.Second
	maxDelay   = 15 * time.Second
)

// Errors of this package.
var (
	// ErrUnprepared: not everything is prepared. The text of the error says what is missing.
	ErrUnprepared = errors.New("storage is not prepared yet")
	// ErrUntried is that what is missing is not known yet: the first round is not over.
	ErrUntried = errors.New("the first round is not over")

	errEnded = errors.New("nobody prepares it any more")
)

// Step makes one thing, or a few that belong together, where they are missing. It may be called again after it has failed.
type Step = func(ctx context.Context) error

// Preparation is everything that a program needs. A nil Preparation needs nothing. It is safe for concurrent use.
type Preparation struct {
	log      *slog.Logger
	prepared chan struct{} // closed when everything is
	ended    chan struct{} // closed when Run has given up, because the program stops
	why      error         // why it has; read after ended is closed

	work   Work
	round  sync.Mutex // held by the one round that runs
	asked  bool       // Known has said what it knows; guarded by round
	stages [][]Step   // what is left, of the first stage; guarded by round
	// madeAt is when the last call of Again ended, and madeErr how; guarded by round.
	madeAt  time.Time
	madeErr error

	mu   sync.Mutex
	last error // why the last round has failed
}

// Work is what a Preparation does.
type Work struct {
	// Known says whether Make was done before, by any process, for just this program: then it is left out. nil does not know, and an
	// error knows nothing.
	Known func(ctx context.Context) (bool, error)
	// Make are the stages of what has to be there, and Mark is the last of them: what lets Known know, nil for nothing.
	Make [][]Step
	Mark Step
	// Always is what every process does, when the rest is there.
	Always []Step
}

// New makes a preparation of stages that has done nothing yet. The log is required.
func New(log *slog.Logger, stages ...[]Step) *Preparation {
	return NewOf(log, Work{Make: stages})
}

// NewOf makes a preparation that has done nothing yet. The log is required.
func NewOf(log *slog.Logger, w Work) *Preparation {
	return &Preparation{log: log, work: w, last: ErrUntried, prepared: make(chan struct{}), ended: make(chan struct{})}
}

// Run tries until everything is prepared (nil), or ctx ends (its cause). From then on, nobody waits any more. It is called once.
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

// Try makes one round. The error is a *RoundError. When everything is prepared, there is nothing to do.
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

// needed are the stages that there are to do: all of them, when it cannot be found out.
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

// made are the stages of what has to be there.
func (p *Preparation) made() [][]Step {
	stages := slices.Clone(p.work.Make)
	if p.work.Mark != nil {
		stages = append(stages, []Step{p.work.Mark})
	}
	return stages
}

// through does stage after stage, and gives what is left. The error is a *RoundError.
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

// Again makes everything once more, whatever is known, because something has turned out to be missing. Calls at the same time, and
// those of a moment later, share what the first has found.
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

// failed keeps the outcome of a round.
func (p *Preparation) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.last != nil {
		close(p.prepared)
	}
	p.last = err
}

// all runs steps at the same time, and gives those that have failed, in their order, with their errors.
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

// guarded makes a panic an error: it happens in a goroutine that nobody else guards, and would end the process each time.
func (p *Preparation) guarded(ctx context.Context, step Step) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.ErrorContext(ctx, "a step of the preparation panicked", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v; the log has its stack", r)
		}
	}()
	return step(ctx)
}

// Await waits until everything is prepared. The error is ErrUnprepared, with what the last round has met, when ctx ends before,
// or when the program stops: then it is also the cause of the end of Run's context.
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

// unlessPrepared is why somebody does not wait any longer. Run ends when everything is prepared, too.
func (p *Preparation) unlessPrepared(why error) error {
	if err := p.Err(); err != nil {
		return fmt.Errorf("%w (%w)", err, why)
	}
	return nil
}

// Err is nil when everything is prepared, and otherwise ErrUnprepared with what the last round has met.
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
