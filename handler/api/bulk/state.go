package bulk

import (
	"time"

	"github.com/vibedata/roundhouse/outbox"
)

// Request is what an operation is asked for. It is kept in the rounds of its orchestration: its JSON names stay.
type Request struct {
	Action outbox.Action `json:"action"`
	// Status, Tenant, EventType, From and To are the filter, as outbox.Filter has it.
	Status    outbox.Status `json:"status,omitempty"`
	Tenant    string        `json:"tenant,omitempty"`
	EventType string        `json:"eventType,omitempty"`
	From      time.Time     `json:"fromDate,omitzero"`
	To        time.Time     `json:"toDate,omitzero"`
	// By is who decided on it, "" for unknown.
	By string `json:"by,omitempty"`
}

// sameAs says whether other, an operation's, is what r asks for. What r has no To for may have any.
func (r Request) sameAs(other Request) bool {
	sameTo := r.To.IsZero() || r.To.Equal(other.To)
	sameFrom := r.From.Equal(other.From)
	r.From, r.To, other.From, other.To = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return sameFrom && sameTo && r == other
}

// Progress is how far an operation is.
type Progress struct {
	// Slices counts the slices that are finished, Done the messages in them that were changed, and PassedOver those that
	// could not be: being delivered, ended meanwhile, gone.
	Slices     int `json:"slices"`
	Done       int `json:"done"`
	PassedOver int `json:"passedOver"`
}

// state is an operation between two slices.
type state struct {
	Request
	Progress
	Continuation string `json:"continuation,omitempty"`
}

func (s state) filter() outbox.Filter {
	return outbox.Filter{
		Status: s.Status, TenantID: s.Tenant, EventType: s.EventType, CreatedFrom: s.From, CreatedTo: s.To,
		Limit: sliceSize, Continuation: s.Continuation,
	}
}

// shown is the custom status of the orchestration.
type shown struct {
	Request  Request  `json:"request"`
	Progress Progress `json:"progress"`
}

func (s state) shown() shown { return shown{s.Request, s.Progress} }

// sliceResult is what a slice has brought.
type sliceResult struct {
	Done         int    `json:"done"`
	PassedOver   int    `json:"passedOver"`
	Continuation string `json:"continuation,omitempty"`
}
