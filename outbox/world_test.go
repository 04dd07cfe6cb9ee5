package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/google/go-cmp/cmp"
	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/testenv"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// world outlives processes: storage, a clock, and the deliveries.
type world struct {
	tables    tables.Store
	queues    queues.Store
	blobs     blobs.Store
	table     string
	queue     string
	container string
	options   Options

	mu    sync.Mutex
	clock time.Time // zero: the real one, or a bubble's
	sent  []Event
	dead  []DeadEvent
	lines bytes.Buffer
	// deliver is the destination, deadHook the dead-letter hook; nil succeeds.
	deliver func(ctx context.Context, e Event) error
	// letters are the dead letters by message; tellFails makes reports of them fail.
	letters   map[string]map[string]ClosedAs
	tellFails func() error
	// nodes is the identity of the next process; nil: "node-1".
	nodes Nodes
}

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// newWorld returns an empty world in memory, at noon.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		tables: tables.NewMemory(), blobs: blobs.NewMemory(),
		table: DefaultTable, queue: DefaultQueue, container: DefaultContainer,
		options: DefaultOptions(), clock: noon(),
	}
	memory := queues.NewMemory()
	memory.Now = w.now
	w.queues = memory
	w.create(t)
	return w
}

// azuriteWorld returns an empty world in the emulator, at noon.
func azuriteWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	account := storage.Account(t)
	var errs [3]error
	w.tables, errs[0] = azure.NewTables(account)
	w.queues, errs[1] = azure.NewQueues(account)
	w.blobs, errs[2] = azure.NewBlobs(account)
	testenv.OK(t, errors.Join(errs[:]...))
	w.table, w.queue, w.container = azuritetest.Name("t"), azuritetest.Name("q"), azuritetest.Name("c")
	w.create(t)
	return w
}

// start runs a test in parallel with others, in its own world with one process.
func start(t *testing.T) (*world, *process) {
	t.Helper()
	t.Parallel()
	w := newWorld(t)
	return w, w.process(t, nil)
}

func (w *world) create(t testing.TB) {
	t.Helper()
	testenv.OK(t, w.process(t, nil).o.Create(t.Context()))
}

// integration runs a test of the document's matrix in memory and against the emulator.
func integration(t *testing.T, name string, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		t.Run("memory", func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t))
		})
		t.Run("azurite", func(t *testing.T) {
			t.Parallel()
			test(t, azuriteWorld(t))
		})
	})
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clock.IsZero() {
		return time.Now()
	}
	return w.clock
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

// Write receives log lines.
func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.Write(p)
}

func (w *world) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.String()
}

// events returns the deliveries so far.
func (w *world) events() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Event(nil), w.sent...)
}

func (w *world) deaths() []DeadEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]DeadEvent(nil), w.dead...)
}

// Deliver is the destination "sink" of the world.
func (w *world) Deliver(ctx context.Context, e Event) error {
	if w.deliver != nil {
		if err := w.deliver(ctx, e); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, e)
	return nil
}

// transport is a function that delivers.
type transport func(ctx context.Context, e Event) error

func (f transport) Deliver(ctx context.Context, e Event) error { return f(ctx, e) }

// process is one process of the world.
type process struct {
	o          *Outbox
	writer     *Writer
	dispatcher *Dispatcher
	admin      *Admin
	monitor    *Monitor
}

// deliveryOf returns the call that delivers a message.
func deliveryOf(key uuid.UUID) faults.Call {
	return faults.Call{Service: "transport", Operation: "Deliver", Target: key.String()}
}

// process starts a process whose calls, its deliveries included, pass through a plan; it may be nil.
func (w *world) process(t testing.TB, plan *faults.Plan) *process {
	t.Helper()
	var sink Transport = w
	if plan != nil {
		sink = transport(func(ctx context.Context, e Event) error {
			return plan.Intercept(ctx, deliveryOf(e.Key), func(ctx context.Context) error { return w.Deliver(ctx, e) })
		})
	}
	return w.routed(t, plan, []Route{{EventType: "*", Destination: "sink"}}, Destinations{"sink": sink})
}

func (w *world) routed(t testing.TB, plan *faults.Plan, routes []Route, destinations Destinations) *process {
	t.Helper()
	if plan == nil {
		return w.intercepted(t, nil, routes, destinations)
	}
	return w.intercepted(t, plan.Intercept, routes, destinations)
}

// intercepted starts a process whose storage calls pass through an interceptor; it may be nil.
func (w *world) intercepted(t testing.TB, intercept faults.Interceptor, routes []Route, destinations Destinations) *process {
	t.Helper()
	c := Config{
		Tables: w.tables, Queues: w.queues, Blobs: w.blobs, Table: w.table, Queue: w.queue, Container: w.container,
		Options: w.options, Node: "node-1", Nodes: w.nodes, Now: w.now, Random: func() float64 { return 0.5 },
		Logger: slog.New(slog.NewTextHandler(w, nil)), Letters: w,
	}
	if intercept != nil {
		c.Tables, c.Queues, c.Blobs = faults.Tables(w.tables, intercept), faults.Queues(w.queues, intercept), faults.Blobs(w.blobs, intercept)
	}
	o := testenv.Must(New(c))(t)
	router := testenv.Must(NewRouter(routes, destinations))(t)
	dispatcher := testenv.Must(NewDispatcher(o, DispatcherConfig{Router: router}))(t)
	return &process{o: o, writer: NewWriter(o), dispatcher: dispatcher, admin: NewAdmin(o), monitor: NewMonitor(o)}
}

// Open and Close make the world the keeper of the letters of its messages: a letter is named after its life.
func (w *world) Open(_ context.Context, e DeadEvent) (string, error) {
	if w.tellFails != nil {
		if err := w.tellFails(); err != nil {
			return "", err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.lettersOf(e.TenantID, e.ID)
	name := e.Reopened
	if name == "" {
		name = "letter of " + e.Began.Format(time.RFC3339Nano)
	}
	if _, there := of[name]; !there {
		w.dead = append(w.dead, e)
	}
	for other := range of {
		if of[other] == "" {
			of[other] = "followed"
		}
	}
	of[name] = ""
	return name, nil
}

func (w *world) Close(_ context.Context, c Closing) error {
	if w.tellFails != nil {
		if err := w.tellFails(); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.lettersOf(c.TenantID, c.ID)
	for name := range of {
		if of[name] == "" {
			of[name] = c.As
		}
	}
	return nil
}

// lettersOf returns the letters of a message, with their ends; "" for pending.
func (w *world) lettersOf(tenant, id string) map[string]ClosedAs {
	if w.letters == nil {
		w.letters = map[string]map[string]ClosedAs{}
	}
	of := w.letters[tenant+"/"+id]
	if of == nil {
		of = map[string]ClosedAs{}
		w.letters[tenant+"/"+id] = of
	}
	return of
}

// pendingLetters counts the pending letters of a message.
func (w *world) pendingLetters(tenant, id string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range w.lettersOf(tenant, id) {
		n += boolToInt(end == "")
	}
	return n
}

func key(n int) uuid.UUID { return Key("test", "key", fmt.Sprint(n), "", "") }

func message1(n int) Message {
	return Message{TenantID: "acme", EventType: "order.created", Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Key: key(n)}
}

func (p *process) add(t testing.TB, m Message) Added {
	t.Helper()
	return testenv.Must(p.writer.Add(t.Context(), m))(t)
}

func (p *process) sweep(t testing.TB) Result {
	t.Helper()
	return testenv.Must(p.dispatcher.Sweep(t.Context()))(t)
}

func (p *process) get(t testing.TB, tenant, id string) Record {
	t.Helper()
	r := testenv.Must(p.admin.Get(t.Context(), tenant, id))(t)
	looked, err := p.admin.Look(t.Context(), tenant, id)
	read := r
	read.Payload = nil // Look omits it
	if diff := cmp.Diff(read, looked); diff != "" || err != nil {
		t.Errorf("a look shows something else than a read: %v\n%s", err, diff)
	}
	return r
}

// rows counts the rows of a tenant by the first letter of their keys, without those that keep it open.
func (w *world) rows(t testing.TB, tenant string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for e, err := range tables.All(t.Context(), w.tables, w.table, tables.Query{Partition: partition(tenant)}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Row[:2] != openPrefix {
			counts[e.Row[:1]]++
		}
	}
	return counts
}

// check compares the rows of a tenant: every message has exactly the index rows of its status, and its letters unless
// it owes them.
func (w *world) check(t testing.TB, tenant string) map[Status]int {
	t.Helper()
	statuses := map[Status]int{}
	index := map[string][]string{}
	records, owed := map[string]message{}, map[string]bool{}
	for e, err := range tables.All(t.Context(), w.tables, w.table, tables.Query{Partition: partition(tenant)}) {
		if err != nil {
			t.Fatal(err)
		}
		switch prefix := e.Row[:2]; prefix {
		case messagePrefix:
			m := testenv.Must(decode(e))(t)
			records[m.ID] = m
			statuses[m.Status]++
		case orderPrefix, openPrefix:
		case owedPrefix:
			owed[idOf(e)] = true
		default:
			index[e.String("Id")] = append(index[e.String("Id")], prefix)
		}
	}
	for id, m := range records {
		if n := w.pendingLetters(tenant, id); owed[id] != (m.owed != nil) || m.owed == nil && n != boolToInt(m.hasLetter()) {
			t.Errorf("%s is %s, reported at %v, owes %+v, is announced to owe %v, and has %d pending letters", id, m.Status, m.ReportedAt, m.owed, owed[id], n)
		}
		want := map[Status]string{StatusPending: pendingPrefix, StatusProcessed: processedPrefix, StatusSkipped: processedPrefix, StatusDead: deadPrefix}[m.Status]
		if m.Status == StatusPending && m.hasFailed() {
			want = failedPrefix + " " + want
		}
		got := strings.Join(index[id], " ")
		if got != want && got != strings.Replace(want, pendingPrefix, waitingPrefix, 1) {
			t.Errorf("%s is %s, has index rows %q, want %q", id, m.Status, got, want)
		}
		delete(index, id)
	}
	for id, rows := range index {
		t.Errorf("%s has no message but index rows %v", id, rows)
	}
	return statuses
}
