package poller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/internal/redact"
)

// tickFailureEvery is the minimum interval between two records of a process that its ticks fail. A poller that runs
// every ten seconds must not write every ten seconds while its database is unavailable.
const tickFailureEvery = time.Minute

// TickFailure is the error of the latest failed ticks. It is nil when the latest tick has succeeded, and when Failure
// has the error.
type TickFailure struct {
	Error string `json:"error"`
	// Ticks counts the consecutive failed ticks, as far as recorded: once a minute.
	Ticks   int       `json:"ticks"`
	FirstAt time.Time `json:"first_failure_at"`
	LastAt  time.Time `json:"last_failure_at"`

	extra fields
}

// UnmarshalJSON keeps unknown fields.
func (f *TickFailure) UnmarshalJSON(data []byte) (err error) {
	type plain TickFailure
	f.extra, err = decodeObject(data, (*plain)(f))
	return err
}

// MarshalJSON writes unknown fields unchanged.
func (f *TickFailure) MarshalJSON() ([]byte, error) {
	type plain TickFailure
	return encodeObject((*plain)(f), f.extra)
}

// TickFailures records in the state of a poller that its ticks fail: the first failure immediately, and later ones once
// a minute. A poller without a state gets one. It writes nothing while a process has the lease, and fences no process.
// Store and Poller are required. It is safe for concurrent use.
type TickFailures struct {
	Store  Store
	Poller string
	// Now is a clock of which only differences are used; the default is time.Now.
	Now func() time.Time

	mu sync.Mutex
	// unwritten counts the failed ticks since the record at this local time, which is zero when nothing was recorded since
	// a success.
	unwritten int
	written   time.Time
}

// Add records a failed tick. The end of the tick's context alone is not recorded: the process is stopping then.
func (f *TickFailures) Add(ctx context.Context, cause error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unwritten++
	now := time.Now
	if f.Now != nil {
		now = f.Now
	}
	if !f.written.IsZero() && now().Sub(f.written) < tickFailureEvery {
		return nil
	}
	err := f.change(ctx, func(doc *Document, at time.Time) bool {
		failure := TickFailure{FirstAt: at}
		if doc.TickFailure != nil {
			failure = *doc.TickFailure
		}
		failure.Error, failure.LastAt = clip(redact.Text(cause.Error()), maxErrorText), at
		failure.Ticks += f.unwritten
		doc.TickFailure = &failure
		return true
	})
	if err != nil {
		return fmt.Errorf("write down that the tick has failed: %w", err)
	}
	f.written, f.unwritten = now(), 0
	return nil
}

// Forget makes the next failure the first one again. It writes nothing.
func (f *TickFailures) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written, f.unwritten = time.Time{}, 0
}

// Clear records a successful tick, and removes the record that the tick has found, nil for none.
func (f *TickFailures) Clear(ctx context.Context, found *TickFailure) error {
	f.Forget()
	if found == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.change(ctx, func(doc *Document, _ time.Time) bool {
		found := doc.TickFailure != nil
		doc.TickFailure = nil
		return found
	})
	if err != nil {
		return fmt.Errorf("write down that ticks do not fail any more: %w", err)
	}
	return nil
}

// change changes the document, unless another process is responsible for it. After a concurrent change, the other
// process wins.
func (f *TickFailures) change(ctx context.Context, change func(doc *Document, at time.Time) bool) error {
	state, err := f.Store.Load(ctx, f.Poller)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	doc := newDocument(f.Poller)
	if err == nil {
		if doc, err = decodeFor(f.Poller, state.Data); err != nil {
			return err
		}
	}
	if doc.Retired || live(doc, state.Time) || !change(doc, state.Time) {
		return nil
	}
	data, err := doc.Encode()
	if err != nil {
		return err
	}
	if _, err = f.Store.Swap(ctx, f.Poller, data, state.ETag); needsReread(err) {
		return nil
	}
	return err
}
