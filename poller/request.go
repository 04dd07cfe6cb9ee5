package poller

import (
	"slices"
	"time"
)

// maxRequests is the number of requests that a state stores.
const maxRequests = 8

// Request identifies a requested change. Its zero value identifies none.
type Request struct {
	// ID is the same for repeats of a request, and Digest for requests of the same change.
	ID     string `json:"request_id"`
	Digest string `json:"digest"`
	// At is when the change was made, by the clock of the state store.
	At time.Time `json:"at"`
}

// has reports whether a request was carried out. The error is ErrRequestReused.
func (d *Document) has(r Request) (bool, error) {
	if d == nil || r.ID == "" {
		return false, nil
	}
	at := slices.IndexFunc(d.Requests, func(done Request) bool { return done.ID == r.ID })
	switch {
	case at < 0:
		return false, nil
	case d.Requests[at].Digest != r.Digest:
		return false, ErrRequestReused
	default:
		return true, nil
	}
}

// remember records a request that this version of the document carries out.
func (d *Document) remember(r Request, at time.Time) {
	if r.ID == "" {
		return
	}
	r.At = at
	all := append(slices.Clone(d.Requests), r)
	d.Requests = all[max(0, len(all)-maxRequests):]
}

// untouched reports whether a state only records that ticks have failed.
func (d *Document) untouched() bool {
	return d.Fingerprint == "" && d.Checkpoint == nil && d.Lease.Token == 0 && d.Backfill == nil
}
