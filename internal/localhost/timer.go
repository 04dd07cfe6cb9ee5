package localhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vibedata/roundhouse/blobs"
)

// statusContainer is the container of the real host's timer status.
const statusContainer = "azure-webjobs-hosts"

// timerStatus is a timer's state across restarts, in the real host's form.
type timerStatus struct {
	Last        dateTime
	Next        dateTime
	LastUpdated dateTime
}

// statusBlob stores one timer's status: in a blob, or for the life of the host without a store.
type statusBlob struct {
	store  blobs.Store
	name   string
	memory *timerStatus
}

func newStatusBlob(store blobs.Store, hostID, function string) *statusBlob {
	return &statusBlob{store: store, name: fmt.Sprintf("timers/%s/Host.Functions.%s/status", hostID, function)}
}

// load returns nil for a timer that never ran.
func (b *statusBlob) load(ctx context.Context) (*timerStatus, error) {
	if b.store == nil {
		return b.memory, nil
	}
	call, cancel := detached(ctx)
	defer cancel()
	data, err := b.store.Get(call, statusContainer, b.name)
	if errors.Is(err, blobs.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read timer status: %w", err)
	}
	status := &timerStatus{}
	if err := json.Unmarshal(data, status); err != nil {
		return nil, fmt.Errorf("read timer status %s: it is not valid, delete the blob: %w", b.name, err)
	}
	return status, nil
}

func (b *statusBlob) save(ctx context.Context, status timerStatus) error {
	if b.store == nil {
		b.memory = &status
		return nil
	}
	call, cancel := detached(ctx)
	defer cancel()
	if err := b.store.CreateContainer(call, statusContainer); err != nil {
		return fmt.Errorf("save timer status: %w", err)
	}
	if err := b.store.Put(call, statusContainer, b.name, encode(status)); err != nil {
		return fmt.Errorf("save timer status: %w", err)
	}
	return nil
}

// timer invokes one function when it is due, never twice at a time.
type timer struct {
	function     string
	schedule     schedule
	runOnStartup bool
	status       *statusBlob // nil: the timer keeps no status
	zone         *time.Location
	run          func(ctx context.Context, status *timerStatus, pastDue bool) // reports its own failures
	now          func() time.Time
	log          *slog.Logger
}

// listen works until ctx ends and the running invocation is over.
func (t *timer) listen(ctx context.Context) {
	status, overdue := t.begin(ctx)
	if overdue || t.runOnStartup {
		status = t.fire(ctx, t.time(), status, overdue)
	}
	for ctx.Err() == nil {
		// Counted from the end of the previous run, so ticks during that run are skipped.
		due := t.schedule.next(t.time())
		if due.IsZero() {
			t.log.Error("timer is never due again", "function", t.function)
			return
		}
		if !sleep(ctx, due.Sub(t.now())) {
			return
		}
		if status != nil {
			status.Next = dateTime{due}
		}
		status = t.fire(ctx, due, status, false)
	}
}

func (t *timer) time() time.Time { return t.now().In(t.zone) }

// begin loads the status and reports whether an occurrence was missed while no host ran.
func (t *timer) begin(ctx context.Context) (status *timerStatus, overdue bool) {
	if t.status == nil {
		return nil, false
	}
	now := t.time()
	status, err := t.status.load(ctx)
	if err != nil {
		t.log.Error("timer starts without its status", "function", t.function, "error", err)
	}
	if status == nil {
		status = &timerStatus{Next: dateTime{t.schedule.next(now)}, LastUpdated: dateTime{now}}
		t.save(ctx, *status)
		return status, false
	}
	// A changed schedule counts from the last check of the old one.
	if since := status.LastUpdated.Time; !since.IsZero() {
		if expected := t.schedule.next(since.In(t.zone)); !expected.Equal(status.Next.Time) {
			status.Next = dateTime{expected}
		}
	}
	return status, now.After(status.Next.Time)
}

// fire invokes the function and advances the status, whether it succeeded or not.
func (t *timer) fire(ctx context.Context, due time.Time, status *timerStatus, overdue bool) *timerStatus {
	if ctx.Err() != nil {
		return status
	}
	t.run(ctx, status, overdue)
	if status == nil {
		return nil
	}
	updated := timerStatus{
		Last:        dateTime{due},
		Next:        dateTime{t.schedule.next(laterOf(due, t.time()))},
		LastUpdated: dateTime{laterOf(due, t.time())},
	}
	t.save(ctx, updated)
	return &updated
}

func (t *timer) save(ctx context.Context, status timerStatus) {
	if err := t.status.save(ctx, status); err != nil {
		t.log.Error("timer forgets when it ran", "function", t.function, "error", err)
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sleep waits; false means that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
