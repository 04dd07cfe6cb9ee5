package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begin is the start time of these tests: a Saturday.
var begin = time.Date(2026, 11, 21, 1, 0, 30, 0, time.UTC)

// world is a storage account, a clock, and the sent messages.
type world struct {
	tables *tables.Memory
	now    time.Time

	mu   sync.Mutex
	sent []sending
	// refuse is the error of the queues; nil if they accept messages.
	refuse error
}

// sending is a sent message and its time.
type sending struct {
	At time.Time
	engine.Message
	Slot time.Time
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{tables: tables.NewMemory(), now: begin}
	if err := w.tables.CreateTable(t.Context(), schedule.Table); err != nil {
		t.Fatal(err)
	}
	return w
}

// Send implements engine.Sender.
func (w *world) Send(_ context.Context, queue string, body []byte, _ time.Duration) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return "", w.refuse
	}
	s := sending{At: w.now}
	if err := json.Unmarshal(body, &s.Message); err != nil {
		return "", err
	}
	if queue != s.Engine+"-queue" {
		return "", errors.New("the queue of another engine")
	}
	if len(s.Input) > 0 {
		if err := json.Unmarshal(s.Input, &s.Slot); err != nil {
			return "", err
		}
	}
	w.sent = append(w.sent, s)
	return "", nil
}

// message returns the message function of a target: its input is the slot.
func message(instance string) func(time.Time) (engine.Message, error) {
	return func(slot time.Time) (engine.Message, error) {
		input, err := json.Marshal(slot)
		return engine.Message{InstanceID: instance, Input: input}, err
	}
}

// fixed returns targets by name.
func fixed(names ...string) *engine.Items {
	var items []engine.Item
	for _, name := range names {
		items = append(items, engine.Item{Name: name, Message: message(name)})
	}
	return engine.FixedItems(items...)
}

// plain returns a schedule without targets.
func plain(cron string) engine.Schedule {
	return engine.Schedule{Cron: cron, Messages: func(_ context.Context, slot time.Time) ([]engine.Message, error) {
		m, err := message("")(slot)
		return []engine.Message{m}, err
	}}
}

func definition(name string, schedules ...engine.Schedule) engine.Definition {
	return engine.Definition{Name: name, Queue: name + "-queue", Schedules: schedules}
}

func planOf(t testing.TB, s schedule.Setting, engines ...engine.Definition) *schedule.Plan {
	t.Helper()
	p, err := schedule.NewPlan(engines, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// scheduler returns a process.
func (w *world) scheduler(t testing.TB, p *schedule.Plan) *schedule.Scheduler {
	t.Helper()
	return w.over(t, p, w.tables, w)
}

func (w *world) over(t testing.TB, p *schedule.Plan, store tables.Store, queues engine.Sender) *schedule.Scheduler {
	t.Helper()
	s, err := schedule.New(schedule.Config{Plan: p, Tables: store, Queues: queues, Now: func() time.Time { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// until ticks every minute until a time.
func (w *world) until(t testing.TB, s *schedule.Scheduler, end time.Time) {
	t.Helper()
	for ; !w.now.After(end); w.now = w.now.Add(time.Minute) {
		if _, err := s.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// slots returns the sent messages, as "{engine} {instance} {slot}", in order.
func (w *world) slots() []string {
	var out []string
	for _, s := range w.sent {
		out = append(out, s.Engine+" "+s.InstanceID+" "+s.Slot.Format("01-02 15:04:05"))
	}
	return out
}

func clock(hour, minute int) time.Time {
	return time.Date(2026, 11, 21, hour, minute, 30, 0, time.UTC)
}

// sorted returns the sent messages, sorted.
func (w *world) sorted() []string {
	out := w.slots()
	slices.Sort(out)
	return out
}
