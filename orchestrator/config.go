package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// Config says what a Runtime works with. Tables and Blobs are required.
type Config struct {
	Tables tables.Store
	Blobs  blobs.Store
	// Table and Container hold the orchestrations; default "orchestrations" for both. IndexTable finds those that are
	// parked, and TaskTable the human tasks; default "orchestrationsParked" and "orchestrationTasks".
	Table      string
	Container  string
	IndexTable string
	TaskTable  string
	// Orchestrators and Activities are what this process can run; names are unique.
	Orchestrators []AnyOrchestrator
	Activities    []AnyActivity
	// Queues carries signals; without it, orchestrations cannot wait for events, and what they wait for beyond the time of
	// a Run is the caller's to wait for. SignalQueue is for what is due now, ScheduleQueue for what is due later, and
	// ActivityQueue for activities that are too many for one process; default "orchestration-signals",
	// "orchestration-schedules" and "orchestration-activities".
	Queues        queues.Store
	SignalQueue   string
	ScheduleQueue string
	ActivityQueue string
	// SpreadAbove is how many activities of one orchestration run at once in this process before others get the rest;
	// default 1,000.
	MaxInlineActivities int
	// InlineWait is how far away a timer may be that Run waits for, when there are queues to wake it; default 30 s.
	InlineWait time.Duration
	// Publish takes the events that orchestrations publish, after the round that did. It may get the same again, and knows
	// them by tenant and key. Without it, Context.Publish is an error.
	Publish func(ctx context.Context, events []Publication) error
	// Stalled is called when the code cannot go on with an orchestration that a signal woke, before the signal is
	// acknowledged; again each time that it is tried in vain. Outcome.Failure says why. An error brings the signal again.
	Stalled func(ctx context.Context, out Outcome) error
	// Ended is called when a signal has brought an orchestration without a parent to its end, before the signal is
	// acknowledged. An error brings the signal again. It is called, too, before the next run under an id begins
	// (ReuseEnded), with the end of the one before it, which may have been told already.
	Ended func(ctx context.Context, out Outcome) error
	// Damaged is called when an orchestration was met that cannot be read, once it was taken: after an error, the next
	// sweep calls it again. What was mended, and is damaged again, is told again.
	Damaged func(ctx context.Context, d Damage) error
	// Noted hears of every orchestration that begins, and of every change of a status, once that is durable. It is called
	// by whoever commits a round, so it must not wait; what a crash keeps from it, nobody tells it. Optional.
	StatusChanged func(n StatusChange)
	// Node names this process in what it writes; default host name and process id.
	Node string
	// ProgressInterval is how often the progress that an activity's heartbeats tell is recorded; default 30 s.
	ProgressInterval time.Duration
	// LostAfter is after what time an orchestration that waits for others of this program is looked after, in case that
	// their message is lost; default 1 h. LateAfter is the same for one whose timer is overdue; default 5 min.
	LostAfter time.Duration
	LateAfter time.Duration
	// MaxActivities bounds the activities that run at once in this process; default 64.
	MaxActivities int
	// Linger is how long a result that leads to no decision waits for others, so that they share a round; default 250 ms.
	// LingerResults bounds how many such results wait; default 100. A crash loses what waits, and those activities run
	// again.
	Linger        time.Duration
	LingerResults int
	// TurnTimeout is how long an orchestrator may run without waiting for something; default 10 s. One that takes longer is
	// blocked by what it must not do, and stalls.
	TurnTimeout time.Duration
	// Grace is how long activities may take to return once their time is over; default 2 s.
	Grace time.Duration
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Log takes what the runtime and the orchestrators log; default slog.Default().
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	setDefault(&c.Table, "orchestrations")
	setDefault(&c.Container, "orchestrations")
	setDefault(&c.IndexTable, "orchestrationsParked")
	setDefault(&c.TaskTable, "orchestrationTasks")
	setDefault(&c.SignalQueue, "orchestration-signals")
	setDefault(&c.ScheduleQueue, "orchestration-schedules")
	setDefault(&c.ActivityQueue, "orchestration-activities")
	setDefault(&c.MaxInlineActivities, 1000)
	setDefault(&c.ProgressInterval, 30*time.Second)
	setDefault(&c.LostAfter, time.Hour)
	setDefault(&c.LateAfter, 5*time.Minute)
	setDefault(&c.InlineWait, 30*time.Second)
	setDefault(&c.MaxActivities, 64)
	setDefault(&c.Linger, 250*time.Millisecond)
	setDefault(&c.LingerResults, 100)
	setDefault(&c.TurnTimeout, 10*time.Second)
	setDefault(&c.Grace, 2*time.Second)
	if c.Node == "" {
		host, _ := os.Hostname() // without one, the process id has to do
		c.Node = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
