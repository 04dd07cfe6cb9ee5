package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
)

// errorType lets errors of one type survive the journey through the rounds.
type errorType struct {
	name   string
	encode func(err error) (detail json.RawMessage, ok bool)
	decode func(detail json.RawMessage) (error, error)
}

// WithError lets errors of the type E that an activity returns, or wraps, survive: errors.As finds them in what Await
// returns, also after a crash and in another process. They travel as JSON, so what is to survive has to be exported, and
// must not be a secret. Other errors keep their text only.
func WithError[E error]() CallOption {
	t := errorType{
		name: fmt.Sprintf("%T", *new(E)),
		encode: func(err error) (json.RawMessage, bool) {
			e, ok := errors.AsType[E](err)
			if !ok {
				return nil, false
			}
			detail, err := marshal(e)
			return detail, err == nil
		},
		decode: func(detail json.RawMessage) (error, error) {
			var e E
			err := json.Unmarshal(detail, &e)
			return e, err
		},
	}
	return func(o *callOptions) { o.errors = append(o.errors[:len(o.errors):len(o.errors)], t) }
}

// keep records in f what has to survive of err.
func (o callOptions) keep(f *Failure, err error) {
	defer func() { _ = recover() }() // user code that panics keeps nothing
	for _, t := range o.errors {
		if detail, ok := t.encode(err); ok && len(detail) <= maxMessage {
			f.Type, f.Detail = t.name, detail
			return
		}
	}
}

// revive gives the error that f recorded; nil when it recorded none, or none that this code knows.
func (o callOptions) revive(f *Failure) error {
	defer func() { _ = recover() }() // user code that panics revives nothing
	for _, t := range o.errors {
		if t.name == f.Type {
			if err, bad := t.decode(f.Detail); bad == nil {
				return err
			}
		}
	}
	return nil
}
