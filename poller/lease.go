package poller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// acquireTries bounds how often an acquisition starts over because the document changed, or because the outcome is
// unknown.
const acquireTries = 5

// leaseManager loads and writes the state document of a poller, and acquires leases on it.
type leaseManager struct {
	store  Store
	poller string
	node   Node
	// owner returns the current name of this process in leases.
	owner func() string
	// ttl is how long a lease lasts without a heartbeat. Its owner stops a margin before that, and another process takes
	// it a margin after that. The two margins allow for the store's precision and for clocks that run at different speeds.
	ttl, margin time.Duration
	clock       *clock
}

// observedVersion is a version of the document, and the time when this process saw it first.
type observedVersion struct {
	etag string
	at   time.Time
}

// load reads the document. For a missing one, both the document and the error are nil.
func (t *leaseManager) load(ctx context.Context) (*Document, State, error) {
	ctx, cancel := context.WithTimeout(ctx, t.callTimeout())
	defer cancel()
	sent := t.clock.now()
	state, err := t.store.Load(ctx, t.poller)
	t.clock.observe(state.Time, sent)
	if errors.Is(err, ErrNotFound) {
		return nil, state, nil
	}
	if err != nil {
		return nil, state, err
	}
	doc, err := decodeFor(t.poller, state.Data)
	return doc, state, err
}

// decodeFor decodes the document of this poller.
func decodeFor(poller string, data []byte) (*Document, error) {
	doc, err := Decode(data)
	if err == nil && doc.PollerName != poller {
		err = fmt.Errorf("%w: it is that of poller %s", ErrCorrupt, doc.PollerName)
	}
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	return doc, nil
}

// swap writes the document. sent is the send time of the request, by the clock of this process.
func (t *leaseManager) swap(ctx context.Context, doc *Document, etag string) (state State, sent time.Time, err error) {
	data, err := doc.Encode()
	if err != nil {
		return State{}, time.Time{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.callTimeout())
	defer cancel()
	sent = t.clock.now()
	state, err = t.store.Swap(ctx, t.poller, data, etag)
	t.clock.observe(state.Time, sent)
	return state, sent, err
}

// callTimeout bounds a call, so that a lease has time for several.
func (t *leaseManager) callTimeout() time.Duration { return t.ttl / 6 }

// checkHeld returns ErrHeld when another process has the lease. The lease may be taken if it is free, if this owner had
// it before, if it has expired by the store's clock, or if this process has not seen a renewal for its duration.
func (t *leaseManager) checkHeld(doc *Document, state State, seen observedVersion) error {
	l := doc.Lease
	if l.Owner == "" || l.Owner == t.owner() || !state.Time.Before(l.Expires.Add(t.margin)) {
		return nil
	}
	lasts := l.Expires.Sub(l.Heartbeat)
	if lasts > 0 && seen.etag == state.ETag && t.clock.now().Sub(seen.at) >= lasts+t.margin {
		return nil
	}
	return fmt.Errorf("%w: %s, with token %d, until %s", ErrHeld, l.Owner, l.Token, l.Expires.Format(time.RFC3339))
}

// newDocument returns the document of a poller that has never run.
func newDocument(poller string) *Document {
	return &Document{Version: documentVersion, PollerName: poller}
}

// acquire acquires the lease on a loaded document (section 6). prepare changes the document in the same write, or
// prevents it with an error. The errors are ErrHeld, ErrRetired, those of prepare and those of the store.
func (t *leaseManager) acquire(ctx context.Context, doc *Document, state State, seen observedVersion, prepare func(*Document) error) (*lease, error) {
	var last error
	for range acquireTries {
		if doc == nil {
			doc = newDocument(t.poller)
		}
		if doc.Retired {
			return nil, ErrRetired
		}
		if err := t.checkHeld(doc, state, seen); err != nil {
			return nil, err
		}
		meant := doc.clone()
		now := t.clock.time()
		meant.Lease = Lease{Owner: t.owner(), Nonce: uuid.NewString(), Token: doc.Lease.Token + 1,
			Acquired: now, Heartbeat: now, Expires: now.Add(t.ttl), extra: doc.Lease.extra}
		if err := prepare(meant); err != nil {
			return nil, err
		}
		written, sent, err := t.swap(ctx, meant, state.ETag)
		if err == nil {
			return t.startHolding(ctx, meant, written.ETag, sent), nil
		}
		if !needsReread(err) {
			return nil, err
		}
		last = err
		if doc, state, err = t.loadAgain(ctx); err != nil {
			return nil, errors.Join(err, last)
		}
		if doc != nil && sameHold(doc.Lease, meant.Lease) {
			return t.startHolding(ctx, doc, state.ETag, sent), nil
		}
	}
	return nil, last
}

// needsReread reports whether an error of a swap leaves the current document unknown.
func needsReread(err error) bool {
	return errors.Is(err, ErrChanged) || errors.Is(err, ErrOutcomeUnknown)
}

// sameHold reports whether two leases are one acquisition.
func sameHold(a, b Lease) bool { return a.Owner == b.Owner && a.Nonce == b.Nonce && a.Token == b.Token }

// loadAgain reads the document after a write with an unknown outcome. It retries for some time.
func (t *leaseManager) loadAgain(ctx context.Context) (doc *Document, state State, err error) {
	wait := firstPause
	for range acquireTries {
		if doc, state, err = t.load(ctx); err == nil || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion) {
			return doc, state, err
		}
		if !pause(ctx, wait) {
			break
		}
		wait = min(2*wait, lastPause)
	}
	return doc, state, err
}

// These bound the pauses between tries of a storage call.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// pause waits for d, and reports whether the context has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
