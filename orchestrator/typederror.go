package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vibedata/roundhouse/internal/redact"
)

// errorType encodes and decodes the errors of one type.
type errorType struct {
	name   string
	encode func(err error) (detail json.RawMessage, ok bool)
	decode func(detail json.RawMessage) (error, error)
}

// WithError keeps the type of errors of type E that an activity or a sub-orchestration returns or wraps. errors.As
// finds them in the error of Await, also after a crash and in another process. They are stored as JSON, so their data
// has to be in exported fields and must not be secret. Values that look secret, also by the names of their members,
// are replaced by "[redacted]" before the code sees them. Of other errors, only the text is kept.
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

// errorTypes are the types that a call has named by WithError.
type errorTypes []errorType

// names returns the names for a sub-orchestration's start.
func (all errorTypes) names() []string {
	var names []string
	for _, t := range all {
		names = append(names, t.name)
	}
	return names
}

// record stores err in f, if its type is named.
func (all errorTypes) record(f *Failure, err error) {
	defer func() { _ = recover() }() // a panic of user code records nothing
	for _, t := range all {
		if detail, ok := t.encode(err); ok && len(detail) <= maxMessage {
			f.Type, f.Detail = t.name, redact.JSON(detail)
			return
		}
	}
}

// restore returns the error that f stores; nil when it stores none, or an error of an unknown type.
func (all errorTypes) restore(f *Failure) error {
	defer func() { _ = recover() }() // a panic of user code restores nothing
	for _, t := range all {
		if t.name == f.Type {
			if err, bad := t.decode(f.Detail); bad == nil {
				return err
			}
		}
	}
	return nil
}

// recordNamed stores in f the error in err that has a type named by the caller. This code need not know the type.
func recordNamed(f *Failure, err error, names []string) {
	defer func() { _ = recover() }() // a panic of user code records nothing
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
		f.Type, f.Detail = fmt.Sprintf("%T", named), redact.JSON(detail)
	}
}

// walk visits an error and those that it wraps, until found returns true.
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
