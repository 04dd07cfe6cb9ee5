package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Config says what a Worker runs. The zero value is valid: a worker in memory that knows no orchestrator.
type Config struct {
	// Runtime says which orchestrators and activities there are, where they are kept, and all that concerns a single
	// orchestration. Tables, Queues and Blobs are given all three, or none: then they are in memory. An orchestration that is
	// started with WillRetry is not started again by a Worker.
	Runtime orchestrator.Config
	// Schedules start orchestrations at set times.
	Schedules []Schedule
	// Concurrency is how many messages of each of the three queues are worked on at once; default 100. A message keeps its
	// place while its orchestration is driven, short timers included (Runtime.InlineWait). Runtime.MaxActivities bounds the
	// activities.
	Concurrency int
	// MaxPollInterval is how long an empty queue is left alone at most; default 1 s. What this process sends it works on at
	// once, so the interval matters for what others send and for what is due later. On Azure, a poll is a transaction: three
	// queues, and their poison queues at a tenth of that, cost about 285,000 a day with the default.
	MaxPollInterval time.Duration
	// Visibility is for how long a received message is hidden, renewed while it is worked on: how long the work of a worker
	// that died waits; default 30 s, at least 2 s.
	Visibility time.Duration
	// RetryDelay is after what time a message that failed comes again, doubled with each failure up to 10 min; default 5 s.
	RetryDelay time.Duration
	// MaxDequeueCount is how often a message is received before it is a dead letter or poison; default 8.
	MaxDequeueCount int
	// SweepInterval is how often orchestrations are looked for whose message was lost; default 1 min. One worker does it at a
	// time.
	SweepInterval time.Duration
	// Retention is how long orchestrations are kept once they have ended; 0 keeps them for ever. Payloads in blobs that a
	// dead process has left go with them, while no message waits.
	Retention time.Duration
	// StopTimeout is how long what is at work may go on when the context of Run ends; default 0. Then activities are canceled,
	// and run again in another worker; orchestrations are put down where they are.
	StopTimeout time.Duration
}

// withDefaults fills what was left out.
func (c Config) withDefaults() Config {
	if c.Runtime.Tables == nil && c.Runtime.Queues == nil && c.Runtime.Blobs == nil {
		c.Runtime.Tables, c.Runtime.Queues, c.Runtime.Blobs = tables.NewMemory(), queues.NewMemory(), blobs.NewMemory()
	}
	if c.Runtime.Log == nil {
		c.Runtime.Log = slog.Default()
	}
	c.Runtime.Log = redact.Logger(c.Runtime.Log)
	setDefault(&c.Concurrency, 100)
	setDefault(&c.MaxPollInterval, time.Second)
	setDefault(&c.Visibility, 30*time.Second)
	setDefault(&c.RetryDelay, 5*time.Second)
	setDefault(&c.MaxDequeueCount, 8)
	setDefault(&c.SweepInterval, time.Minute)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate names everything that is wrong with a configuration.
func (c Config) validate() error {
	var errs []error
	if c.Runtime.Tables == nil || c.Runtime.Queues == nil || c.Runtime.Blobs == nil {
		errs = append(errs, errors.New("give all three of Runtime.Tables, Queues and Blobs, or none for stores in memory"))
	}
	if c.Concurrency < 1 || c.MaxDequeueCount < 1 || c.MaxPollInterval < 0 || c.RetryDelay < 0 || c.SweepInterval < 0 || c.Retention < 0 || c.StopTimeout < 0 {
		errs = append(errs, errors.New("numbers and times must be positive"))
	}
	if c.Visibility < 2*time.Second || c.Visibility > queues.MaxDelay {
		errs = append(errs, fmt.Errorf("a visibility of %v: use 2 s to %v", c.Visibility, queues.MaxDelay))
	}
	return errors.Join(append(errs, checkSchedules(c)...)...)
}
