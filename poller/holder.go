package poller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// lease is a lease that this process holds. One goroutine makes all of its writes, heartbeats and commits, so that each
// write knows the version that it replaces without reading it.
type lease struct {
	*leaseManager
	// acquisition is the lease as acquired, and acquired is the document then.
	acquisition Lease
	acquired    *Document
	// ctx ends when the lease is lost, by this process's own clock at the latest. Its cause then is an ErrLost.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// expiry cancels ctx at the deadline.
	expiry   *time.Timer
	deadline time.Time

	requests chan request
	done     chan struct{} // closed when the goroutine has ended

	// doc and etag are used by the goroutine only.
	doc  *Document
	etag string
}

// request is a write for the goroutine.
type request struct {
	change func(*Document)
	// last releases the lease with the write.
	last   bool
	answer chan answer
}

type answer struct {
	doc *Document // as stored now
	err error
}

// errReleased means that the lease was released.
var errReleased = errors.New("the lease was given back")

// startHolding starts the goroutine of an acquired lease, which was written no earlier than at this local time.
func (t *leaseManager) startHolding(ctx context.Context, doc *Document, etag string, sent time.Time) *lease {
	l := &lease{leaseManager: t, acquisition: doc.Lease, acquired: doc, doc: doc, etag: etag, requests: make(chan request), done: make(chan struct{})}
	// The lease outlives a cancelled tick: delivered rows still have to be committed.
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.deadline = l.validUntil(sent)
	l.expiry = time.AfterFunc(l.remaining(), func() {
		l.cancel(fmt.Errorf("%w: token %d was not renewed in time", ErrLost, l.acquisition.Token))
	})
	go l.run(t.node.Hold("")) // the node is monitored only while it has work in flight
	return l
}

func (l *lease) validUntil(sent time.Time) time.Time { return sent.Add(l.ttl - l.margin) }

// remaining returns how long the owner may continue without a heartbeat.
func (l *lease) remaining() time.Duration { return l.deadline.Sub(l.clock.now()) }

// write changes the document and renews the lease in the same write (section 8). It returns the new document. ErrLost
// means that the change may not have been applied.
func (l *lease) write(change func(*Document)) (*Document, error) { return l.request(change, false) }

// release applies the change and releases the lease, and ends the goroutine. After any error, the lease is no longer
// held.
func (l *lease) release(change func(*Document)) error {
	_, err := l.request(change, true)
	l.cancel(errReleased)
	<-l.done
	return err
}

func (l *lease) request(change func(*Document), last bool) (*Document, error) {
	r := request{change, last, make(chan answer, 1)}
	select {
	case l.requests <- r:
		a := <-r.answer
		return a.doc, a.err
	case <-l.done:
		return nil, context.Cause(l.ctx)
	}
}

// run is the goroutine: it makes writes and heartbeats.
func (l *lease) run(letGo func()) {
	defer close(l.done)
	defer letGo()
	defer l.expiry.Stop()
	beat := l.ttl / 3
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for l.ctx.Err() == nil {
		select {
		case r := <-l.requests:
			err := l.writeUntilKnown(r.change, r.last)
			r.answer <- answer{l.doc, err}
			if r.last {
				return
			}
			timer.Reset(beat)
		case <-timer.C:
			if err := l.writeUntilKnown(func(*Document) {}, false); err != nil {
				timer.Reset(beat / 4) // the remaining time decides, not the number of failures
				continue
			}
			timer.Reset(beat)
		case <-l.ctx.Done():
		}
	}
}

// writeUntilKnown repeats a change until it is applied, the lease is lost, or the store refuses the change permanently.
func (l *lease) writeUntilKnown(change func(*Document), last bool) error {
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		if err := l.checkAlive(); err != nil {
			return err
		}
		meant := l.next(change, last)
		state, sent, err := l.swap(l.ctx, meant, l.etag)
		if err == nil {
			l.stored(meant, state.ETag, sent)
			return nil
		}
		if !needsReread(err) && !transient(err) {
			return err
		}
		if needsReread(err) {
			// A 412 may be caused by an own write whose answer was lost: the stored document decides.
			settled, resolveErr := l.resolve(meant, sent)
			if resolveErr != nil {
				return resolveErr
			}
			if settled {
				return nil
			}
		}
		if !pause(l.ctx, wait) {
			return context.Cause(l.ctx)
		}
	}
}

// checkAlive returns an error when the lease has ended. The timer may be late: after a suspension of the whole process,
// all its goroutines resume at the same time.
func (l *lease) checkAlive() error {
	if l.ctx.Err() == nil && l.remaining() <= 0 {
		l.cancel(fmt.Errorf("%w: token %d was not renewed in time", ErrLost, l.acquisition.Token))
	}
	return context.Cause(l.ctx)
}

// next returns the document as it will be after the change.
func (l *lease) next(change func(*Document), last bool) *Document {
	meant := l.doc.clone()
	change(meant)
	now := l.clock.time()
	meant.Lease.Heartbeat, meant.Lease.Expires = now, now.Add(l.ttl)
	if last {
		meant.Lease.Owner, meant.Lease.Nonce, meant.Lease.Expires = "", "", now
	}
	return meant
}

// stored records the stored version of the document.
func (l *lease) stored(doc *Document, etag string, sent time.Time) {
	l.doc, l.etag, l.deadline = doc, etag, l.validUntil(sent)
	l.expiry.Reset(l.remaining())
}

// resolve reads the document after a write with an unknown outcome, until it can be read. It reports whether the write
// was applied; if not, the next write replaces the stored document. The error is ErrLost.
func (l *lease) resolve(meant *Document, sent time.Time) (settled bool, err error) {
	want, err := meant.Encode()
	if err != nil {
		return false, err
	}
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		doc, state, err := l.load(l.ctx)
		if err == nil {
			if bytes.Equal(state.Data, want) {
				l.stored(meant, state.ETag, sent)
				return true, nil
			}
			if doc == nil || !sameHold(doc.Lease, l.acquisition) {
				l.cancel(lostTo(doc, l.acquisition.Token))
				return false, context.Cause(l.ctx)
			}
			l.doc, l.etag = doc, state.ETag
			return false, nil
		}
		if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion) {
			l.cancel(fmt.Errorf("%w: %w", ErrLost, err))
		}
		if !pause(l.ctx, wait) {
			return false, context.Cause(l.ctx)
		}
	}
}

func lostTo(doc *Document, token int64) error {
	switch {
	case doc == nil:
		return fmt.Errorf("%w: the state document of token %d is gone", ErrLost, token)
	case doc.Lease.Owner == "":
		return fmt.Errorf("%w: token %d was fenced by %d", ErrLost, token, doc.Lease.Token)
	}
	return fmt.Errorf("%w: %s took it with token %d, after %d", ErrLost, doc.Lease.Owner, doc.Lease.Token, token)
}
