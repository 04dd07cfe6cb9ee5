package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
	"unicode/utf8"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// These are the defaults of Config.
const (
	DefaultTable     = "outbox"
	DefaultQueue     = "outbox-wake"
	DefaultContainer = "outbox"
)

// Config configures an Outbox.
type Config struct {
	// Tables, Queues and Blobs are required.
	Tables tables.Store
	Queues queues.Store
	Blobs  blobs.Store
	// Table, Queue and Container default to DefaultTable, DefaultQueue and DefaultContainer.
	Table, Queue, Container string
	Options                 Options
	// Letters keeps the dead letters of messages; nil keeps none. Processes that share an outbox must agree on it.
	Letters Letters
	// Node is the name of this process in claims and attempt logs; the default is derived from the host name and the
	// process id.
	Node string
	// Nodes provides the node name when other nodes can take this process over, and then replaces Node. It may be nil.
	Nodes Nodes
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Random returns numbers in [0, 1) for the jitter; nil means math/rand.
	Random   func() float64
	Observer Observer
}

// Observer has callbacks for counters. A nil function is not called. The functions are called concurrently and must not
// block.
type Observer struct {
	// Added is called for a new message.
	Added func()
	// Duplicate is called for a message whose key existed already, maybe with another payload.
	Duplicate func(payloadDiffers bool)
	// Claimed is called for a claimed batch.
	Claimed func(messages int)
	// Attempted is called at the end of a delivery. It is not called for messages that an open circuit postponed.
	Attempted func(ctx context.Context, destination string, outcome Outcome, took time.Duration)
	// Settled is called when a message reaches its final status, this long after it was added.
	Settled func(status Status, sinceCreated time.Duration)
	// Lost is called when the claim of a message was lost before its settlement; the message may be delivered twice.
	Lost func()
	// Circuit is called when a destination's circuit opens or closes.
	Circuit func(destination string, open bool)
}

// Outcome is the result of a delivery.
type Outcome string

// These are the outcomes.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"   // transient: retried
	Refused   Outcome = "refused"  // permanent
	Unrouted  Outcome = "unrouted" // no Route matches the event
	// Misconfigured: nothing was sent because configuration is missing; see ErrMisconfigured
	Misconfigured Outcome = "misconfigured"
)

// Outbox is shared by Writer, Dispatcher, Admin and Monitor. Make one in each process, with New. It is safe for
// concurrent use.
type Outbox struct {
	tables    tables.Store
	blobs     blobs.Store
	table     string
	container string
	options   Options
	nodes     Nodes
	logger    *slog.Logger
	now       func() time.Time
	random    func() float64
	observe   Observer
	tenants   tenants
	openings  openings
	wake      waker
	window    *window
	letters   Letters
}

// New returns an Outbox. The error names all errors of the configuration. New does not use storage: Create does.
func New(c Config) (*Outbox, error) {
	var errs []error
	if c.Tables == nil || c.Queues == nil || c.Blobs == nil {
		errs = append(errs, fmt.Errorf("%w: Tables, Queues and Blobs are needed", ErrInvalid))
	}
	errs = append(errs, c.Options.Validate())
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("new outbox: %w", err)
	}
	now := c.Now
	if now == nil {
		now = time.Now
	}
	o := &Outbox{
		tables:    c.Tables,
		blobs:     c.Blobs,
		table:     cmp.Or(c.Table, DefaultTable),
		container: cmp.Or(c.Container, DefaultContainer),
		options:   c.Options.withDefaults(),
		nodes:     c.Nodes,
		logger:    redact.Logger(cmp.Or(c.Logger, slog.Default())),
		now:       func() time.Time { return truncated(now()) },
		random:    c.Random,
		letters:   c.Letters,
		observe:   c.Observer.complete(),
	}
	if o.random == nil {
		o.random = random
	}
	if o.nodes == nil {
		o.nodes = fixedNode(cmp.Or(c.Node, defaultNode()))
	}
	if o.letters == nil {
		o.letters = noLetters{}
	}
	o.wake = waker{queue: c.Queues, name: cmp.Or(c.Queue, DefaultQueue), logger: o.logger, now: o.now}
	o.window = newWindow(o.options.MetricsWindow)
	return o, nil
}

// Options returns the options with defaults applied.
func (o *Outbox) Options() Options { return o.options }

// Create creates the table, the queue and the container if they are missing.
func (o *Outbox) Create(ctx context.Context) error {
	err := errors.Join(
		o.tables.CreateTable(ctx, o.table),
		o.wake.queue.CreateQueue(ctx, o.wake.name),
		o.blobs.CreateContainer(ctx, o.container),
	)
	if err != nil {
		return fmt.Errorf("create the outbox: %w", err)
	}
	return nil
}

func defaultNode() string {
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// complete sets the functions that are nil.
func (o Observer) complete() Observer {
	if o.Added == nil {
		o.Added = func() {}
	}
	if o.Duplicate == nil {
		o.Duplicate = func(bool) {}
	}
	if o.Claimed == nil {
		o.Claimed = func(int) {}
	}
	if o.Attempted == nil {
		o.Attempted = func(context.Context, string, Outcome, time.Duration) {}
	}
	if o.Settled == nil {
		o.Settled = func(Status, time.Duration) {}
	}
	if o.Lost == nil {
		o.Lost = func() {}
	}
	if o.Circuit == nil {
		o.Circuit = func(string, bool) {}
	}
	return o
}

// checkID checks the limits of an id from outside. Ids may hold any characters, because keys are escaped.
func checkID(what, id string, needed bool) error {
	switch {
	case id == "" && needed:
		return fmt.Errorf("%w: the %s is empty", ErrInvalid, what)
	case len(id) > MaxIDLength:
		return fmt.Errorf("%w: the %s has %d bytes of at most %d", ErrInvalid, what, len(id), MaxIDLength)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: the %s is not UTF-8", ErrInvalid, what)
	}
	return nil
}
