package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"github.com/google/uuid"
	"github.com/vibedata/roundhouse/internal/payload"
)

// The reasons why intakes refuse a request. Sending it again does not help.
var (
	// ErrUnauthorized: the sender of a request did not prove its identity.
	ErrUnauthorized = errors.New("the sender did not prove who it is")
	// ErrNotTaken: the intake does not accept the message from any sender. The sender gets the text of the error.
	ErrNotTaken = errors.New("the message is not taken here")
)

// Intake takes messages for an engine over HTTP, by POST. The body is a message as the engine's queue takes it, in the
// envelope or, with Definition.Adapt, in the sender's own form. The answer is sent once the message is in the queue.
type Intake struct {
	// Function is the name of its function.
	Function string
	// Route is its path behind /api/, such as "orders" or "orders/incoming".
	Route string
	// Authorize checks the sender's permission. Without it and Verify, the host requires a key of the function. It is
	// called before the body is read. It returns ErrUnauthorized for a sender without permission, and any other error
	// when it cannot decide now.
	Authorize func(ctx context.Context, r *http.Request) error
	// Verify checks, in addition to Authorize, a proof over the whole body, such as a signature; nil checks nothing.
	// It returns ErrUnauthorized, ErrNotTaken, or any other error when it cannot decide now.
	Verify func(ctx context.Context, header http.Header, body []byte) error
	// Closed makes the function answer 404 while the settings for Authorize and Verify are missing.
	Closed bool
	// Status is the status of the answer to an accepted message; the default is 202.
	Status int
	// Adapt, if it is set, replaces Definition.Adapt: messages for another intake of the engine, with another
	// authentication, are not accepted here.
	Adapt func(body []byte) (m Message, ok bool, err error)
	// Declines, if it is set, reports which messages are answered with 400. They are queued nevertheless.
	Declines func(body []byte) bool
}

// Endpoint is a function of an engine that answers HTTP requests itself.
type Endpoint struct {
	// Function is the name of its function.
	Function string
	// Route is its path behind /api/; its last segment may be a parameter, as in "acme-challenge/{token}".
	Route string
	// Methods are the methods that the host accepts, at least one.
	Methods []string
	// Anonymous allows requests without a key; otherwise the host asks for a key of the function.
	Anonymous bool
	// Handler answers the requests.
	Handler http.Handler
}

var functionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,127}$`)

// These match the routes of intakes and of endpoints. Routes that begin with admin or runtime are reserved for the
// host, those below machine for callers with keys.
var (
	intakeRoute   = regexp.MustCompile(`^[a-z0-9-]+(/[a-z0-9-]+)*$`)
	endpointRoute = regexp.MustCompile(`^[a-z0-9-]+(/[a-z0-9-]+)*(/\{[a-z]+\})?$`)
	reservedRoute = regexp.MustCompile(`^(admin|runtime|machine(/|$))`)
)

// ValidFunctionName reports whether the host accepts a name as that of a function. It keeps "host" for itself.
func ValidFunctionName(name string) bool { return functionName.MatchString(name) && name != "host" }

func (i Intake) validate() error {
	switch {
	case !ValidFunctionName(i.Function):
		return fmt.Errorf("intake %.64q: the name of a function has letters, digits, - and _, and begins with a letter", i.Function)
	case !intakeRoute.MatchString(i.Route) || reservedRoute.MatchString(i.Route):
		return fmt.Errorf("intake %s: route %.64q: lower-case letters, digits and dashes, with slashes between them; not admin, not machine, not runtime", i.Function, i.Route)
	case i.Status != 0 && (i.Status < 200 || i.Status > 299):
		return fmt.Errorf("intake %s: status %d is not a success", i.Function, i.Status)
	}
	return nil
}

func (e Endpoint) validate() error {
	switch {
	case !ValidFunctionName(e.Function):
		return fmt.Errorf("endpoint %.64q: the name of a function has letters, digits, - and _, and begins with a letter", e.Function)
	case !endpointRoute.MatchString(e.Route) || reservedRoute.MatchString(e.Route):
		return fmt.Errorf("endpoint %s: route %.64q: lower-case letters, digits and dashes, with slashes between them; not admin, not machine, not runtime", e.Function, e.Route)
	case len(e.Methods) == 0 || e.Handler == nil:
		return fmt.Errorf("endpoint %s: methods and a handler are required", e.Function)
	}
	return nil
}

// Accept converts the body of an intake request to a message. Unlike a message from the queue, it cannot name a blob,
// because senders over HTTP have no access to the platform's blobs. The message always has a correlation id.
func (d Definition) Accept(body []byte) (Message, error) {
	m, err := d.accept(bytes.TrimPrefix(body, []byte(payload.ByteOrderMark)))
	if err != nil {
		return Message{}, err
	}
	if m.CorrelationID == "" {
		m.CorrelationID = uuid.NewString()
	}
	errs := []error{checkOutsideID(m.CorrelationID), checkLength("operation", m.Operation, MaxInstanceIDLength),
		checkLength("instance id", m.InstanceID, MaxInstanceIDLength), checkTenant(m.TenantID)}
	if strings.ContainsFunc(m.CorrelationID, unicode.IsControl) { // it goes into a header of the answer
		errs = append(errs, errors.New("a correlation id has no control characters"))
	}
	if err := errors.Join(errs...); err != nil {
		return Message{}, err
	}
	return m, nil
}

// accept decodes the senders' own form, or else the envelope.
func (d Definition) accept(body []byte) (Message, error) {
	if d.Adapt != nil {
		m, ok, err := d.Adapt(body)
		m.NaturalKey = true
		if err == nil && (!ok || !json.Valid(m.Input)) {
			err = fmt.Errorf("not a message of the engine %s", d.Name)
		}
		return m, err
	}
	m, err := envelopeOf(body)
	if err != nil {
		return m, err
	}
	if m.Blob != "" {
		return m, errors.New("a message over HTTP has its input in itself, not in a blob")
	}
	if m.Engine != "" && m.Engine != d.Name {
		return m, fmt.Errorf("the message is for the engine %.64q, not for %s", m.Engine, d.Name)
	}
	m.Engine = d.Name
	return m, nil
}
