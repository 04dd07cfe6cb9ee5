package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/orchestrator"
)

// DefaultMaxAttempts is the default of Definition.MaxAttempts.
const DefaultMaxAttempts = 5

// PublisherInstance is the instance id of work that is not for a managed instance (standard, section 2).
const PublisherInstance = "publisher"

// Definition defines an engine completely. Functions, queues, tables, the API and the command line are derived from
// it.
type Definition struct {
	// Name is the engine's name in messages, history and dead letters.
	Name string
	// Queue is the queue of its messages. The host moves abandoned messages to the queue with PoisonSuffix.
	Queue string
	// Function is the name of the function that listens to Queue; the default is "{Name}-queue-trigger".
	Function string
	// Orchestrator runs its messages; make it with Orchestrate. New runs begin with it.
	Orchestrator orchestrator.AnyOrchestrator
	// Versions are other versions of the orchestrator (orchestrator.WithVersion). Runs that began with one of them
	// continue with it.
	Versions []orchestrator.AnyOrchestrator
	// Children are the orchestrators that it calls or starts. The history does not show their activities, which belong to
	// Activities.
	Children []orchestrator.AnyOrchestrator
	// Operations are the activities that the history shows, each under its name. Activities of all engines share one
	// name space: when another engine has one of the same name, name it {engine}/{operation}, and the history shows the
	// part behind the slash. The first one names a run whose message names no operation.
	Operations []orchestrator.AnyActivity
	// Activities are the activities that the history does not show.
	Activities []orchestrator.AnyActivity
	// Adapt, if it is set, converts messages of foreign senders, who do not know the envelope. It is called with the
	// body of every message. With ok false, the body is read as the envelope; an error makes the message a dead letter.
	// The result must depend on the body alone.
	Adapt func(body []byte) (m Message, ok bool, err error)
	// Owner returns the tenant that owns everything a run of the message acts on, "" for the platform. instanceTenant
	// is the tenant of the message's instance. Callers of one tenant may start the engine only if the owner is their
	// tenant; without Owner, they may not start it. Engines that act only on the message's instance use
	// InstanceOwner.
	Owner func(ctx context.Context, m Message, instanceTenant string) (tenantID string, err error)
	// Singleton is the scope within which the engine has one run at a time; other messages wait. Runs that change the
	// registry also have to take its lock, with Locked.
	Singleton Scope
	// Timeout bounds each attempt at a message, waits included; an attempt that takes longer fails. 0 sets no bound.
	Timeout time.Duration
	// Schedules send messages to Queue at certain times.
	Schedules []Schedule
	// Intakes take messages for Queue over HTTP, and Endpoints answer other requests.
	Intakes   []Intake
	Endpoints []Endpoint
	// Tables names the tables that the engine owns; they are created if they are missing.
	Tables []string
	// Consumers are the consumers of the engine's rotated credentials, which acknowledge new versions through the
	// API; nil for an engine without rotation.
	Consumers *consumers.Consumers
	// Credentials lists the current versions of the engine's expiring credentials, for metrics and health; nil for
	// none. It is called every few minutes at most, and may leave out unreadable ones, with the error.
	Credentials func(ctx context.Context) ([]Credential, error)
	// Example is an example message, for documents, forms and a first try. Its correlation id stays empty.
	Example *Message
	// InputSchema is a JSON schema of the input of its messages, for documents and forms; nil for none. Messages are
	// not checked against it: the orchestrator validates its input.
	InputSchema json.RawMessage
	// Keep is the retention time of its history and its resolved dead letters; 0 means DefaultKeep.
	Keep time.Duration
	// MaxAttempts is the number of the delivery that is dead-lettered without running (standard, section 1.3). So the
	// work runs MaxAttempts-1 times. 0 means DefaultMaxAttempts.
	MaxAttempts int
}

// InstanceOwner is the Owner of an engine that acts only on the instance of its messages.
func InstanceOwner(_ context.Context, _ Message, instanceTenant string) (string, error) {
	return instanceTenant, nil
}

// Credential is a secret or a certificate that expires.
type Credential struct {
	// Name is its name in the vault.
	Name string
	// ExpiresAt is the expiry of the current version; zero when no version exists, or it does not expire.
	ExpiresAt time.Time
}

// Validate returns all errors of the definition, joined into one.
func (d Definition) Validate() error { return d.withDefaults().validate() }

func (d Definition) validate() error {
	var errs []error
	if err := checkID("engine name", d.Name); err != nil {
		errs = append(errs, err)
	}
	switch {
	case d.Queue == "" || d.Orchestrator == nil || len(d.Operations) == 0:
		errs = append(errs, errors.New("queue, orchestrator and operations are required"))
	case d.Orchestrator.Name() != d.Name:
		errs = append(errs, fmt.Errorf("its orchestrator is named %q; both have to have one name", d.Orchestrator.Name()))
	}
	errs = append(errs, d.validateVersions(), d.validateEntryPoints(), d.validateInputSchema())
	if d.Singleton != "" && d.Singleton != PerInstance && d.Singleton != PerTenant {
		errs = append(errs, fmt.Errorf("an unknown scope %q: Singleton is PerInstance, PerTenant, or empty", d.Singleton))
	}
	if d.Timeout < 0 || d.Keep < 0 {
		errs = append(errs, errors.New("a negative Timeout or Keep"))
	}
	if d.MaxAttempts < 2 {
		errs = append(errs, errors.New("MaxAttempts must be 2 or more: with 1, no message would ever run"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("engine %q: %w", d.Name, err)
	}
	return nil
}

// validateVersions validates Versions and Children.
func (d Definition) validateVersions() error {
	var errs []error
	for _, v := range d.Versions {
		if v == nil || v.Name() != d.Name {
			errs = append(errs, errors.New("each of Versions is an orchestrator that has the engine's name and a version"))
		}
	}
	for _, c := range d.Children {
		if c == nil || c.Name() == d.Name {
			errs = append(errs, errors.New("each of Children is an orchestrator with a name of its own"))
		}
	}
	return errors.Join(errs...)
}

// validateEntryPoints validates schedules, intakes and endpoints.
func (d Definition) validateEntryPoints() error {
	var errs []error
	errs = append(errs, validateSchedules(d.Schedules))
	for _, i := range d.Intakes {
		errs = append(errs, i.validate())
	}
	for _, e := range d.Endpoints {
		errs = append(errs, e.validate())
	}
	return errors.Join(errs...)
}

// maxInputSchema bounds a schema, in bytes: the description of the engine has it, which is a part of a table's row.
const maxInputSchema = 8 << 10

// validateInputSchema validates InputSchema.
func (d Definition) validateInputSchema() error {
	if d.InputSchema == nil {
		return nil
	}
	if !json.Valid(d.InputSchema) || !bytes.HasPrefix(bytes.TrimSpace(d.InputSchema), []byte("{")) || len(d.InputSchema) > maxInputSchema {
		return fmt.Errorf("InputSchema is a JSON object of at most %d bytes", maxInputSchema)
	}
	return nil
}

// QueueFunction returns the name of the function that listens to the engine's queue.
func (d Definition) QueueFunction() string { return cmp.Or(d.Function, d.Name+"-queue-trigger") }

// Orchestrators returns all orchestrators that the engine needs in a runtime. Its own comes after its other versions,
// because new runs begin with the last one of a name.
func (d Definition) Orchestrators() []orchestrator.AnyOrchestrator {
	return slices.Concat(d.Children, d.Versions, []orchestrator.AnyOrchestrator{d.Orchestrator})
}

func (d Definition) withDefaults() Definition {
	if d.MaxAttempts == 0 {
		d.MaxAttempts = DefaultMaxAttempts
	}
	if d.Keep == 0 {
		d.Keep = DefaultKeep
	}
	return d
}

// isOperation reports whether the history shows a call.
func (d Definition) isOperation(c orchestrator.Call) bool {
	return c.Kind == orchestrator.ActivityCall &&
		slices.ContainsFunc(d.Operations, func(o orchestrator.AnyActivity) bool { return o.Name() == c.Name })
}

// operationOf names a run as a whole.
func (d Definition) operationOf(m Message) string {
	if m.Operation != "" {
		return m.Operation
	}
	return d.operationName(d.Operations[0].Name())
}

// operationName returns the name of an operation's activity as the history shows it: without the engine's name before
// it.
func (d Definition) operationName(activity string) string {
	return strings.TrimPrefix(activity, d.Name+"/")
}

// Operation returns the name of an activity as the history shows it, or "" when it is not an operation of the engine.
func (d Definition) Operation(activity string) string {
	if !slices.ContainsFunc(d.Operations, func(o orchestrator.AnyActivity) bool { return o.Name() == activity }) {
		return ""
	}
	return d.operationName(activity)
}

// Request is a message as an engine's orchestrator gets it. In is the type of the engine's own input.
type Request[In any] struct {
	CorrelationID string
	// Operation is the requested operation, "" when the message names none.
	Operation string
	// InstanceID is the managed instance to work on, or PublisherInstance.
	InstanceID string
	TenantID   string
	Input      In
}

// Orchestrate makes an engine's orchestrator of an ordinary function. Input that is not an In, for instance because of
// unknown fields, fails permanently; a message without input gives the zero In. The options are those of any
// orchestrator, such as orchestrator.WithVersion.
func Orchestrate[In, Out any](engine string, fn func(*orchestrator.Context, Request[In]) (Out, error), options ...orchestrator.OrchestratorOption,
) *orchestrator.Orchestrator[Message, Out] {
	options = append(options[:len(options):len(options)], orchestrator.WithInputCheck(func(message json.RawMessage) error {
		var m Message
		var in In
		if err := json.Unmarshal(message, &m); err != nil || m.Blob != "" { // the input in a blob is not loaded here
			return err
		}
		return decodeStrictly(m.Input, &in)
	}))
	return orchestrator.NewOrchestrator(engine, func(ctx *orchestrator.Context, m Message) (Out, error) {
		r := Request[In]{CorrelationID: m.CorrelationID, Operation: m.Operation, InstanceID: m.InstanceID, TenantID: m.TenantID}
		if err := decodeStrictly(m.Input, &r.Input); err != nil {
			var none Out
			return none, orchestrator.Permanent(fmt.Errorf("input of engine %s: %w", engine, err))
		}
		return fn(ctx, r)
	}, options...)
}

// decodeStrictly decodes one JSON value without unknown fields; an empty document and null leave v as it is.
func decodeStrictly(document json.RawMessage, v any) error {
	if len(document) == 0 || bytes.Equal(document, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return payload.Explain(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the JSON value")
	}
	return nil
}
