package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// errorType lets errors of one type survive the way through the rounds.
type errorType struct {
	name   string
	encode func(err error) (detail json.RawMessage, ok bool)
	decode func(detail json.RawMessage) (error, error)
}

// WithError lets errors of the type E that an activity or a sub-orchestration returns, or wraps, survive: errors.As finds
// them in what Await returns, also after a crash and in another process. They travel as JSON, so what is to survive has to
// be exported, and must not be a secret. Other errors keep their text only.
func WithError[E error]() CallOption {
	t := errorType{
		name: fmt.Sprintf("%T", *new(E)),
		encode: func(err error) (json.RawMessage, bool) {
			e, ok := errors.AsType[E](err)
			if !ok {
				return nil, false
			}
			detail, err := encodePayload(e)
			return detail, err == nil
		},
		decode: func(detail json.RawMessage) (error, error) {
			var e E
			err := json.Unmarshal(detail, &e)
			return e, err
		},
	}
	return callOption(func(o *callOptions) { o.errors = append(o.errors[:len(o.errors):len(o.errors)], t) })
}

// errorTypes are those that a call has named.
type errorTypes []errorType

// names are what a sub-orchestration is told of them.
func (all errorTypes) names() []string {
	var names []string
	for _, t := range all {
		names = append(names, t.name)
	}
	return names
}

// record records in f what has to survive of err.
func (all errorTypes) record(f *Failure, err error) {
	defer func() { _ = recover() }() // user code that panics keeps nothing
	for _, t := range all {
		if detail, ok := t.encode(err); ok && len(detail) <= maxMessage {
			f.Type, f.Detail = t.name, detail
			return
		}
	}
}

// restore gives the error that f recorded; nil when it recorded none, or none that this code knows.
func (all errorTypes) restore(f *Failure) error {
	defer func() { _ = recover() }() // user code that panics revives nothing
	for _, t := range all {
		if t.name == f.Type {
			if err, bad := t.decode(f.Detail); bad == nil {
				return err
			}
		}
	}
	return nil
}

// recordNamed records in f what has to survive of err for a caller that has named types which this code need not know.
func recordNamed(f *Failure, err error, names []string) {
	defer func() { _ = recover() }() // user code that panics keeps nothing
	var named error
	walk(err, func(e error) bool {
		if slices.Contains(names, fmt.Sprintf("%T", e)) {
			named = e
		}
		return named != nil
	})
	if named == nil {
		return
	}
	if detail, err := encodePayload(named); err == nil && len(detail) <= maxMessage {
		f.Type, f.Detail = fmt.Sprintf("%T", named), detail
	}
}

// walk shows an error and those that it wraps, until one is found.
func walk(err error, found func(error) bool) bool {
	if err == nil || found(err) {
		return err != nil
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return walk(e.Unwrap(), found)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(inner error) bool { return walk(inner, found) })
	}
	return false
}
