package handler

import (
	"context"
	"sync"
	"time"
)

// blobSweep deletes old blobs of one page of a container; next continues, "" after the last page.
type blobSweep func(ctx context.Context, before time.Time, from string) (removed int, next string, err error)

// blobSweeps runs sweeps, one after the other, page by page. It keeps its place while the process lives.
type blobSweeps struct {
	keep   time.Duration
	now    func() time.Time
	sweeps []blobSweep

	mu   sync.Mutex
	at   int
	next string
}

// slice sweeps one page. A failed sweep is left to the run after the next, so that it does not block the others;
// after a timeout, the next run continues at the same place.
func (b *blobSweeps) slice(ctx context.Context) (removed int, more bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	removed, next, err := b.sweeps[b.at](ctx, b.now().Add(-b.keep), b.next)
	if err != nil && ctx.Err() != nil {
		return removed, true, err
	}
	if b.next = next; next == "" || err != nil {
		b.at, b.next = (b.at+1)%len(b.sweeps), ""
	}
	return removed, b.at > 0 || b.next != "", err
}
