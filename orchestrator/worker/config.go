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

// Config configures a Worker. The zero value is valid: a worker in memory without orchestrators.
type Config struct {
	// Runtime lists the orchestrators and activities, and holds their stores and the limits of a single
	// orchestration. Set Tables, Queues and Blobs together, or none of them: then they are in memory. A Worker does
	// not restart an orchestration that was started with WillRetry.
	Runtime orchestrator.Config
	// Schedules start orchestrations at set times.
	Schedules []Schedule
	// Concurrency bounds the messages of each of the three queues that are in progress; default 100. A message keeps
	// its slot while its orchestration is driven, short timers included (Runtime.InlineWait). Runtime.MaxActivities
	// bounds the activities.
	Concurrency int
	// MaxPollInterval is the longest pause between polls of an empty queue; default 1 s. A worker handles messages of
	// its own process immediately, so the interval only delays messages of other processes and messages that are due
	// later. On Azure, a poll is a transaction: three queues, and their poison queues at a tenth of that, cost about
	// 285,000 a day with the default.
	MaxPollInterval time.Duration
	// Visibility is the time for which a received message is hidden, renewed while it is in progress. After that time
	// another worker receives the message of a worker that died; default 30 s, at least 2 s.
	Visibility time.Duration
	// RetryDelay is the delay before a failed message is redelivered, doubled with each failure up to 10 min; default
	// 5 s.
	RetryDelay time.Duration
	// MaxDequeueCount is the number of deliveries after which a message is dead-lettered or moved to the poison
	// queue; default 8.
	MaxDequeueCount int
	// SweepInterval is the interval of the search for orchestrations whose message was lost; default 1 min. One
	// worker does it at a time.
	SweepInterval time.Duration
	// Retention is the time for which ended orchestrations are kept; 0 keeps them for ever. Payload blobs left by a
	// dead process are deleted with them, when all queues are empty.
	Retention time.Duration
	// StopTimeout is the time that messages in progress have when the context of Run ends; default 0. After it,
	// activities are canceled and run again in another worker; orchestrations stop after their last round.
	StopTimeout time.Duration
}

// withDefaults sets the defaults of empty fields.
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

// validate returns every error of a configuration.
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
