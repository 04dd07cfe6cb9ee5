package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/redact"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// DefaultScheduleQueue is the default of Config.ScheduleQueue.
const DefaultScheduleQueue = "orchestration-schedules"

// Config configures a Runtime. Tables and Blobs are required.
type Config struct {
	Tables tables.Store
	Blobs  blobs.Store
	// Table and Container hold the orchestrations; the default is "orchestrations" for both. IndexTable holds the index
	// of parked orchestrations, by default "orchestrationsParked". TaskTable holds the index of human tasks, by default
	// "orchestrationTasks".
	Table      string
	Container  string
	IndexTable string
	TaskTable  string
	// Orchestrators and Activities are registered in this process; names are unique.
	Orchestrators []AnyOrchestrator
	Activities    []AnyActivity
	// Queues carries signals. Without it, orchestrations cannot wait for events, and a wait beyond the time of a Run is
	// left to the caller. SignalQueue is for signals that are due now, ScheduleQueue for those that are due later, and
	// ActivityQueue for activities that are too many for one process. The defaults are "orchestration-signals",
	// "orchestration-schedules" and "orchestration-activities".
	Queues        queues.Store
	SignalQueue   string
	ScheduleQueue string
	ActivityQueue string
	// MaxInlineActivities bounds the activities of one orchestration that this process runs at the same time. The
	// others go to the activity queue, from which any process takes them. The default is 1,000.
	MaxInlineActivities int
	// InlineWait is the longest timer that Run waits for in memory if Queues is set; for longer timers the
	// orchestration parks. The default is 30 s.
	InlineWait time.Duration
	// Publish publishes the events of orchestrations, after the round that decided on them is committed. It may get an
	// event again, and must recognise it by tenant and key. Without Publish, Context.Publish is an error.
	Publish func(ctx context.Context, events []Publication) error
	// Stalled is called when a signal woke an orchestration that its code cannot continue, before the signal is
	// acknowledged, and after each further attempt that stalls. Outcome.Failure is the cause. After an error, the
	// signal is redelivered.
	Stalled func(ctx context.Context, out Outcome) error
	// Ended is called when a signal has led an orchestration without a parent to its end, before the signal is
	// acknowledged. After an error, the signal is redelivered. Before the next run under an id begins (ReuseEnded),
	// Ended is also called with the end of the previous run, which may have been reported already.
	Ended func(ctx context.Context, out Outcome) error
	// Damaged is called for an unreadable orchestration until a call succeeds: after an error, the next sweep calls it
	// again. An orchestration that was repaired and is damaged again is reported again.
	Damaged func(ctx context.Context, d Damage) error
	// StatusChanged is called when an orchestration has begun and after each change of its status, once that is
	// durable. It runs on the goroutine that commits rounds, so it must not block. If a crash prevents a report, it is
	// never made. Optional.
	StatusChanged func(n StatusChange)
	// CachedEvents bounds the total number of events of the executions that the Runtime keeps in memory after they
	// have come to rest. A signal for one of them needs no replay, unless another process has driven it since. A
	// coroutine counts as 16 events. The default is 0, which keeps none; with more, call Runtime.Close.
	CachedEvents int
	// Nodes lets other processes take over the work of this one immediately when it dies. Without it, they continue
	// when its messages are redelivered.
	Nodes Nodes
	// Tracer records traces of orchestrations. Without it, trace contexts are passed on.
	Tracer Tracer
	// Node is the name that this process writes into rounds and rows, without Nodes. The default is made of host name
	// and process id.
	Node string
	// ProgressInterval is how often the progress that heartbeats report is recorded; the default is 30 s.
	ProgressInterval time.Duration
	// LostAfter is the time after which the sweeper checks an orchestration that waits for another process or
	// orchestration, in case a message was lost; the default is 1 h. LateAfter is the same for one with an overdue
	// timer; the default is 5 min.
	LostAfter time.Duration
	LateAfter time.Duration
	// KeepEarly is how long an event is kept for an orchestration that is not started yet; the default is a day.
	KeepEarly time.Duration
	// MaxActivities bounds the activities that run at the same time in this process; the default is 64.
	MaxActivities int
	// Linger is how long a result that leads to no decision waits for others, so that one round commits them all; the
	// default is 250 ms. LingerResults bounds how many results wait; the default is 100. After a crash, the activities
	// of the results that waited run again.
	Linger        time.Duration
	LingerResults int
	// TurnTimeout is how long an orchestrator may wait for anything but its Context; the default is 10 s. Time in
	// which the process was suspended does not count. Computation may use six times as much processor time of the
	// process. An orchestrator that takes longer does work that belongs in an activity, and is stalled.
	TurnTimeout time.Duration
	// Grace is how long activities may take to return once their context has ended; the default is 2 s.
	Grace time.Duration
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// Log receives the log of the runtime and of the orchestrators, without secrets; the default is slog.Default().
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	setDefault(&c.Table, defaultTable)
	setDefault(&c.Container, DefaultContainer)
	setDefault(&c.IndexTable, defaultIndexTable)
	setDefault(&c.TaskTable, defaultTaskTable)
	setDefault(&c.SignalQueue, "orchestration-signals")
	setDefault(&c.ScheduleQueue, DefaultScheduleQueue)
	setDefault(&c.ActivityQueue, "orchestration-activities")
	setDefault(&c.MaxInlineActivities, 1000)
	setDefault(&c.ProgressInterval, 30*time.Second)
	setDefault(&c.LostAfter, time.Hour)
	setDefault(&c.LateAfter, 5*time.Minute)
	setDefault(&c.KeepEarly, 24*time.Hour)
	setDefault(&c.InlineWait, 30*time.Second)
	setDefault(&c.MaxActivities, 64)
	setDefault(&c.Linger, 250*time.Millisecond)
	setDefault(&c.LingerResults, 100)
	setDefault(&c.TurnTimeout, 10*time.Second)
	setDefault(&c.Grace, 2*time.Second)
	if c.Node == "" {
		host, _ := os.Hostname() // without a host name, the process id has to do
		c.Node = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Log = redact.Logger(c.Log)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
