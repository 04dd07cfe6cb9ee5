package bulk

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// Bounds of a Request.
const (
	// MaxRate bounds RatePerSecond, MaxCanary a Canary, MaxCanarySeconds its CanarySeconds.
	MaxRate          = 100
	MaxCanary        = 50
	MaxCanarySeconds = 3600

	// MaxRows bounds the rows that a Request can name.
	MaxRows = 100

	defaultCanarySeconds = 300
)

// Request is the request of an operation. It is stored in the rounds of its orchestration: its JSON names are fixed.
type Request struct {
	// Action is one of the kind's actions.
	Action string `json:"action"`
	// The filter, as in the kind's list; a zero field does not filter.
	Status         string    `json:"status,omitempty"`
	Tenant         string    `json:"tenant,omitempty"`
	EventType      string    `json:"eventType,omitempty"`
	CorrelationID  string    `json:"correlationId,omitempty"`
	Engine         string    `json:"engine,omitempty"`
	InstanceID     string    `json:"instanceId,omitempty"`
	ErrorSignature string    `json:"errorSignature,omitempty"`
	Orchestrator   string    `json:"orchestrator,omitempty"`
	IDPrefix       string    `json:"idPrefix,omitempty"`
	From           time.Time `json:"fromDate,omitzero"`
	To             time.Time `json:"toDate,omitzero"`
	// CreatedTo bounds the creation, if To has another meaning.
	CreatedTo time.Time `json:"createdTo,omitzero"`
	// OlderThanDays moves To back by so many days.
	OlderThanDays int `json:"olderThanDays,omitempty"`
	// Rows are the selected rows, instead of a filter. An operation shows their number, as Selected, and a hash of
	// them, as Selection, which Start sets.
	Rows      []Row  `json:"rows,omitempty"`
	Selected  int    `json:"selected,omitempty"`
	Selection string `json:"selection,omitempty"`
	// By is the decider, "" for unknown.
	By string `json:"by,omitempty"`
	// RatePerSecond bounds the changes in a second; 0 does not bound them.
	RatePerSecond int `json:"ratePerSecond,omitempty"`
	// Canary is the number of rows to change first. Then it waits for CanarySeconds, 300 unless set, and continues if
	// none of them has failed again. 0 continues immediately.
	Canary        int `json:"canary,omitempty"`
	CanarySeconds int `json:"canarySeconds,omitempty"`
}

// sameAs reports whether other, an operation's request, equals r. Without To in r, other may have any. Callers are
// not compared: idempotency keys are separate by caller, and names change.
func (r Request) sameAs(other Request) bool {
	sameTo := r.To.IsZero() || r.To.Equal(other.To)
	sameFrom := r.From.Equal(other.From) && r.CreatedTo.Equal(other.CreatedTo)
	for _, q := range []*Request{&r, &other} {
		*q = q.Summary()
		q.From, q.To, q.CreatedTo, q.By = time.Time{}, time.Time{}, time.Time{}, ""
	}
	return sameFrom && sameTo && reflect.DeepEqual(r, other)
}

// Summary returns the request with its rows as their number and their hash.
func (r Request) Summary() Request {
	if len(r.Rows) == 0 {
		return r
	}
	hash := sha256.New()
	for _, row := range r.Rows {
		fmt.Fprintf(hash, "%q %q\n", row.Engine, row.RowKey)
	}
	r.Selected, r.Selection, r.Rows = len(r.Rows), hex.EncodeToString(hash.Sum(nil)), nil
	return r
}

func (r Request) canaryWait() time.Duration {
	return time.Duration(cmp.Or(r.CanarySeconds, defaultCanarySeconds)) * time.Second
}

// Progress is the progress of an operation.
type Progress struct {
	// Slices counts the finished slices, Done the changed rows in them, and PassedOver the others: in the wrong
	// state, ended meanwhile, deleted.
	Slices     int `json:"slices"`
	Done       int `json:"done"`
	PassedOver int `json:"passedOver"`
	// Returned counts the rows of the canary that failed again; then the operation stops.
	Returned int `json:"returned,omitempty"`
}

// state is an operation between two slices.
type state struct {
	Request
	Progress
	Continuation string `json:"continuation,omitempty"`
}

func (s *state) add(r Result) {
	s.Slices++
	s.Done += r.Done
	s.PassedOver += r.PassedOver
	s.Continuation = r.Continuation
}

// slice returns the next slice.
func (s state) slice() Slice {
	limit := sliceSize
	if s.RatePerSecond > 0 {
		limit = min(limit, s.RatePerSecond*sliceSeconds)
	}
	if s.Canary > 0 && s.Slices == 0 {
		limit = min(limit, s.Canary)
	}
	return Slice{s.Request, limit, s.Continuation}
}

// verdict returns the result of a finished operation.
func (s state) verdict() error {
	if s.Returned == 0 {
		return nil
	}
	return orchestrator.Permanent(fmt.Errorf("%d of the first %d came back, so the others were left alone", s.Returned, s.Done))
}

// shown is the custom status of the orchestration.
type shown struct {
	Request  Request  `json:"request"`
	Progress Progress `json:"progress"`
}

func (s state) shown() shown { return shown{s.Request.Summary(), s.Progress} }
