package bulk

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/tenant"
)

// DeadLetterKind is the kind of operations on dead letters.
const DeadLetterKind = "dead-letter-bulk"

// The actions on dead letters. Both are for pending ones.
const (
	ActionRetry  = "retry"
	ActionExpire = "expire"
)

// parallel bounds the dead letters of a slice without a rate that are changed in parallel.
const parallel = 8

// DeadLetters works on dead letters.
type DeadLetters struct {
	Letters *engine.DeadLetters
	Retrier *engine.Retrier
	// Engines are the engines of a request without one.
	Engines []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Kind returns the kind DeadLetterKind. A retry that died in the middle continues with its previous retry ids.
func (d DeadLetters) Kind() Kind {
	if d.Now == nil {
		d.Now = time.Now
	}
	return Kind{Name: DeadLetterKind, Work: d.work, Returned: d.returned}
}

func (d DeadLetters) work(ctx context.Context, s Slice) (Result, error) {
	act, ok := map[string]func(context.Context, engine.DeadLetter, string) error{ActionRetry: d.retry, ActionExpire: d.expire}[s.Action]
	if !ok {
		return Result{}, fmt.Errorf("%w: there is no action %q on dead letters", ErrRefused, s.Action)
	}
	letters, next, err := d.meant(ctx, s)
	if err != nil {
		return Result{}, err
	}
	result := Result{Continuation: next}
	var mu sync.Mutex
	err = d.each(ctx, letters, s.RatePerSecond, func(ctx context.Context, l engine.DeadLetter) error {
		err := errOther
		if l.Status == engine.StatusPending {
			err = act(ctx, l, s.By)
		}
		over := errors.Is(err, errOther) || errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrState) || errors.Is(err, engine.ErrNotRetryable)
		if err != nil && !over {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if over {
			result.PassedOver++
			return nil
		}
		result.Done++
		result.Rows = append(result.Rows, Row{l.Engine, l.RowKey})
		return nil
	})
	return result, err
}

// errOther: a named dead letter is not pending, does not exist, or is another tenant's.
var errOther = errors.New("not what is meant")

// meant returns the dead letters of a slice, and the start of the next one, "" after the last.
func (d DeadLetters) meant(ctx context.Context, s Slice) ([]engine.DeadLetter, string, error) {
	if len(s.Rows) > 0 {
		return d.named(ctx, s)
	}
	engines := d.Engines
	if s.Engine != "" {
		engines = []string{s.Engine}
	}
	page, err := d.Letters.List(ctx, engine.DeadLetterFilter{
		Engines: engines, Status: engine.StatusPending, InstanceID: s.InstanceID, TenantID: s.Tenant, ErrorSignature: s.ErrorSignature,
		From: s.From, To: s.To.AddDate(0, 0, -s.OlderThanDays), Limit: s.Limit, Token: s.Continuation,
	})
	if errors.Is(err, engine.ErrFilter) || errors.Is(err, engine.ErrToken) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return page.DeadLetters, page.Token, err
}

// named returns the dead letters of a slice of rows. Missing ones, and those that the request's tenant does not see,
// have no status.
func (d DeadLetters) named(ctx context.Context, s Slice) (letters []engine.DeadLetter, next string, err error) {
	from := 0
	if s.Continuation != "" {
		if from, err = strconv.Atoi(s.Continuation); err != nil || from < 0 || from > len(s.Rows) {
			return nil, "", fmt.Errorf("%w: %q is no place among %d rows", ErrRefused, s.Continuation, len(s.Rows))
		}
	}
	to := min(from+s.Limit, len(s.Rows))
	for _, row := range s.Rows[from:to] {
		l, err := d.Letters.Get(ctx, row.Engine, row.RowKey)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return nil, "", err
		}
		if err != nil || !tenant.Sees(s.Tenant, l.TenantID) {
			l = engine.DeadLetter{Engine: row.Engine, RowKey: row.RowKey}
		}
		letters = append(letters, l)
	}
	if to < len(s.Rows) {
		next = strconv.Itoa(to)
	}
	return letters, next, nil
}

// each works on the letters: with a rate one after the other, else some in parallel.
func (d DeadLetters) each(ctx context.Context, letters []engine.DeadLetter, rate int, work func(context.Context, engine.DeadLetter) error) error {
	if rate > 0 {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for _, l := range letters {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := work(ctx, l); err != nil {
				return err
			}
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, l := range letters {
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil { // no other code recovers in this goroutine
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			return work(ctx, l)
		})
	}
	return group.Wait()
}

func (d DeadLetters) retry(ctx context.Context, l engine.DeadLetter, by string) error {
	_, err := d.Retrier.Retry(ctx, l.Engine, l.RowKey, by)
	return err
}

// expire skips a letter that is no longer pending: a decision on an expired one would be a second one.
func (d DeadLetters) expire(ctx context.Context, l engine.DeadLetter, by string) error {
	_, err := d.Letters.Decide(ctx, l.Engine, l.RowKey, engine.Decision{Status: engine.StatusExpired, By: by, At: d.Now()})
	return err
}

func (d DeadLetters) returned(ctx context.Context, rows []Row) (int, error) {
	n := 0
	for _, row := range rows {
		back, err := d.Letters.FailedAgain(ctx, row.Engine, row.RowKey)
		if err != nil {
			return 0, err
		}
		if back {
			n++
		}
	}
	return n, nil
}
