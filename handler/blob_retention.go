package handler

import (
	"context"
	"sync"
	"time"
)

// blobSweep deletes old blobs of one page of a container; next continues, "" after the last page.
type blobSweep func(ctx context.Context, before time.Time, from string) (removed int, next string, err error)

// blobSweeps are sweeps, one after the other, page by page. They remember their place while the process lives.
type blobSweeps struct {
	keep   time.Duration
	now    func() time.Time
	sweeps []blobSweep

	mu   sync.Mutex
	at   int
	next string
}

// slice is one page. What fails is left to the run after the next, so that it does not keep the others from being swept;
// what runs out of time goes on where it was.
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
