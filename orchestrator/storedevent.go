package orchestrator

import (
	"cmp"
	"encoding/json"
	"reflect"
)

// storedEvent is an event as it is stored, with the fields in this order. Fields are added, never renamed. Their
// meanings are documented at event.
type storedEvent struct {
	Kind          eventKind       `json:"kind"`
	At            int64           `json:"at"`
	Task          int             `json:"task,omitempty"`
	Name          string          `json:"name,omitempty"`
	Payload       json.RawMessage `json:"payload,omitempty"`
	Blob          string          `json:"blob,omitempty"`
	Failure       *Failure        `json:"failure,omitempty"`
	Attempt       int             `json:"attempt,omitempty"`
	Due           int64           `json:"due,omitempty"`
	CorrelationID string          `json:"correlationId,omitempty"`
	Base          int             `json:"base,omitempty"`
	First         int             `json:"first,omitempty"`
	Series        bool            `json:"series,omitempty"`
	Before        int             `json:"before,omitempty"`
	Created       int64           `json:"created,omitempty"`
	Version       string          `json:"version,omitempty"`
	Held          bool            `json:"held,omitempty"`
	Drop          bool            `json:"drop,omitempty"`
	Reference     *Reference      `json:"reference,omitempty"`
	Rules         int             `json:"rules,omitempty"`
	Publishes     bool            `json:"publishes,omitempty"`
	Signals       bool            `json:"signals,omitempty"`
	WillRetry     bool            `json:"willRetry,omitempty"`
	Revived       bool            `json:"revived,omitempty"`
	Call          *callRef        `json:"call,omitempty"`
	Errors        []string        `json:"errors,omitempty"`
	Retrying      bool            `json:"retrying,omitempty"`
	Keeps         bool            `json:"keeps,omitempty"`
	Undoes        int             `json:"undoes,omitempty"`
	Local         bool            `json:"local,omitempty"`
	Shielded      bool            `json:"shielded,omitempty"`
	Close         ParentClose     `json:"close,omitempty"`
	Accepted      int64           `json:"accepted,omitempty"`
	Stream        string          `json:"stream,omitempty"`
	Sequence      int             `json:"sequence,omitempty"`
	Previous      int64           `json:"previous,omitempty"`
	Overtakes     bool            `json:"overtakes,omitempty"`
	Tasks         []int           `json:"tasks,omitempty"`
	Child         string          `json:"child,omitempty"`
	Parent        string          `json:"parent,omitempty"`
	Tenant        string          `json:"tenant,omitempty"`
	Order         string          `json:"order,omitempty"`
	Carry         []byte          `json:"carry,omitempty"`
	Timeout       int64           `json:"timeout,omitempty"`
	Signal        string          `json:"signal,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	Trace         string          `json:"trace,omitempty"`
	Inherited     *inheritance    `json:"inherited,omitempty"`
	Origin        *origin         `json:"origin,omitempty"`
}

// stored returns the stored form of the event.
func (e event) stored() storedEvent {
	s := storedEvent{Kind: e.Kind, At: e.At, Task: e.Task, Name: e.Name, Payload: e.Payload, Blob: e.Blob, Failure: e.Failure, Attempt: e.Attempt, Due: e.Due,
		Retrying: e.Retrying, Keeps: e.Keeps, Shielded: e.Shielded, Inherited: e.Inherited, Origin: e.Origin}
	to, by := e.target(), e.signal()
	s.Undoes, s.Local, s.Child, s.Close, s.Tenant, s.Order, s.Tasks = to.Undoes, to.Local, to.Child, to.Close, to.Tenant, to.Order, to.Tasks
	s.Trace = by.Trace
	s.Signal, s.Reason, s.Accepted, s.Stream, s.Sequence, s.Previous = by.ID, by.Reason, by.Accepted, by.Stream, by.Sequence, by.Previous
	s.Overtakes = by.Overtakes
	if e.Start != nil {
		s.setStart(*e.Start)
	}
	return s
}

func (s *storedEvent) setStart(d startDetails) {
	s.CorrelationID, s.Base, s.First, s.Series, s.Before, s.Created = d.CorrelationID, d.Base, d.First, d.Series, d.Before, d.Created
	s.Version, s.Held, s.Drop, s.Reference = d.Version, d.Held, d.Drop, d.Reference
	s.Rules, s.Publishes, s.Signals, s.WillRetry, s.Revived = d.Rules, d.Publishes, d.Signals, d.WillRetry, d.Revived
	s.Call, s.Errors, s.Parent, s.Carry, s.Timeout = d.Call, d.Errors, d.Parent, d.Carry, d.Timeout
	s.Tenant, s.Trace = cmp.Or(d.Tenant, s.Tenant), cmp.Or(d.Trace, s.Trace)
}

// event is the inverse of event.stored.
func (s storedEvent) event() event {
	start := s.start()
	to := target{Undoes: s.Undoes, Local: s.Local, Child: s.Child, Close: s.Close, Order: s.Order, Tasks: s.Tasks}
	if s.Kind != executionStarted {
		start.Tenant, to.Tenant = "", s.Tenant
	}
	by := signalDetails{ID: s.Signal, Trace: s.Trace, Reason: s.Reason, Accepted: s.Accepted, Stream: s.Stream, Sequence: s.Sequence, Previous: s.Previous, Overtakes: s.Overtakes}
	if s.Kind == executionStarted {
		start.Trace, by.Trace = s.Trace, ""
	}
	return event{Kind: s.Kind, At: s.At, Task: s.Task, Name: s.Name, Payload: s.Payload, Blob: s.Blob, Failure: s.Failure, Attempt: s.Attempt, Due: s.Due,
		Retrying: s.Retrying, Keeps: s.Keeps, Shielded: s.Shielded, Inherited: s.Inherited, Origin: s.Origin,
		Start: pointerTo(start), Target: pointerTo(to), Signal: pointerTo(by)}
}

func (s storedEvent) start() startDetails {
	return startDetails{CorrelationID: s.CorrelationID, Base: s.Base, First: s.First, Series: s.Series, Before: s.Before, Created: s.Created,
		Version: s.Version, Held: s.Held, Drop: s.Drop, Reference: s.Reference,
		Rules: s.Rules, Publishes: s.Publishes, Signals: s.Signals, WillRetry: s.WillRetry, Revived: s.Revived,
		Call: s.Call, Errors: s.Errors, Parent: s.Parent, Tenant: s.Tenant, Carry: s.Carry, Timeout: s.Timeout}
}

// pointerTo returns nil for the zero value.
func pointerTo[T any](v T) *T {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return &v
}

// MarshalJSON encodes the stored form of the event.
func (e event) MarshalJSON() ([]byte, error) { return marshal(e.stored()) }

// UnmarshalJSON decodes the stored form of the event.
func (e *event) UnmarshalJSON(text []byte) error {
	var s storedEvent
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*e = s.event()
	return nil
}
