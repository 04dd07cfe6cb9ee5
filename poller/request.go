package poller

import (
	"slices"
	"time"
)

// maxRequests is how many requests a state remembers.
const maxRequests = 8

// Request identifies a change that somebody asks for. Its zero value identifies none.
type Request struct {
	// ID is the same for repeats of a request, and Digest for those that ask for the same.
	ID     string `json:"request_id"`
	Digest string `json:"digest"`
	// At is when the change was made, by the clock of the state store.
	At time.Time `json:"at"`
}

// has says whether a request was carried out. The error is ErrRequestReused.
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

// remember notes a request that is carried out with this version of the document.
func (d *Document) remember(r Request, at time.Time) {
	if r.ID == "" {
		return
	}
	r.At = at
	all := append(slices.Clone(d.Requests), r)
	d.Requests = all[max(0, len(all)-maxRequests):]
}

// untouched says that a state holds nothing but that ticks have failed.
func (d *Document) untouched() bool {
	return d.Fingerprint == "" && d.Checkpoint == nil && d.Lease.Token == 0 && d.Backfill == nil
}
