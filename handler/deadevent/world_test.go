package deadevent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenant = "contoso"

// world is an outbox with its dead letters, and a destination that accepts, refuses or cannot be reached.
type world struct {
	tables *tables.Memory
	queues *queues.Memory
	blobs  *blobs.Memory

	mu     sync.Mutex
	now    time.Time
	answer func(id string) error
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{tables: tables.NewMemory(), queues: queues.NewMemory(), blobs: blobs.NewMemory(), now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	p := w.process(t, nil)
	testenv.OK(t, errors.Join(p.outbox.Create(t.Context()), p.letters.CreateTable(t.Context())))
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(time.Millisecond)
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// answers sets the destination's answers from now on; nil accepts all.
func (w *world) answers(answer func(id string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

func (w *world) Deliver(_ context.Context, e outbox.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answer == nil {
		return nil
	}
	return w.answer(e.ID)
}

// process is one process over the world; a nil plan breaks nothing.
type process struct {
	outbox     *outbox.Outbox
	writer     *outbox.Writer
	admin      *outbox.Admin
	dispatcher *outbox.Dispatcher
	letters    *engine.DeadLetters
	retrier    *engine.Retrier
	now        func() time.Time
}

func (w *world) process(t testing.TB, plan *faults.Plan) *process {
	t.Helper()
	if plan == nil {
		plan = &faults.Plan{}
	}
	store, messages := faults.Tables(w.tables, plan.Intercept), faults.Queues(w.queues, plan.Intercept)
	p := &process{letters: engine.NewDeadLetters(store, ""), now: w.clock}
	var errs [4]error
	p.outbox, errs[0] = outbox.New(outbox.Config{Tables: store, Queues: messages, Blobs: faults.Blobs(w.blobs, plan.Intercept), Options: outbox.DefaultOptions(),
		Letters: NewLetters(p.letters), Now: w.clock, Random: func() float64 { return 0.5 }, Logger: slog.New(slog.DiscardHandler)})
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	p.writer, p.admin = outbox.NewWriter(p.outbox), outbox.NewAdmin(p.outbox)
	router, err := outbox.NewRouter([]outbox.Route{{EventType: "*", Destination: "world"}}, outbox.Destinations{"world": w})
	errs[1] = err
	p.dispatcher, errs[2] = outbox.NewDispatcher(p.outbox, outbox.DispatcherConfig{Router: router})
	p.retrier, errs[3] = engine.NewRetrier(engine.RetrierConfig{DeadLetters: p.letters, Queues: messages,
		Starts: map[string]engine.RetryFunc{Engine: NewOwner(p.letters, p.admin).Retry}, Now: w.clock})
	testenv.OK(t, errors.Join(errs[:]...))
	return p
}

// add adds an event and returns its id.
func (p *process) add(t testing.TB, n int) string {
	t.Helper()
	added, err := p.writer.Add(t.Context(), outbox.Message{TenantID: tenant, EventType: "t", Payload: json.RawMessage(fmt.Sprint(n)),
		Key: outbox.Key("test", "event", fmt.Sprint(n), "", "")})
	testenv.OK(t, err)
	return added.ID
}

// kill adds an event that dies.
func (p *process) kill(t testing.TB, w *world, n int) string {
	t.Helper()
	id := p.add(t, n)
	w.answers(refuse)
	p.sweep(t)
	w.answers(nil)
	return id
}

func refuse(string) error { return &outbox.DeliveryError{Permanent: true, Err: errors.New("refused")} }

func (p *process) sweep(t testing.TB) {
	t.Helper()
	testenv.Must(p.dispatcher.Sweep(t.Context()))(t)
}

func (p *process) status(t testing.TB, id string) outbox.Status {
	t.Helper()
	r, err := p.admin.Get(t.Context(), tenant, id)
	testenv.OK(t, err)
	return r.Status
}

// of returns the current dead letters of an event, oldest first.
func (p *process) of(t testing.TB, id string) (letters []engine.DeadLetter) {
	t.Helper()
	found, err := p.letters.Of(t.Context(), Engine, id)
	testenv.OK(t, err)
	for _, l := range found {
		whole, err := p.letters.Get(t.Context(), Engine, l.RowKey)
		testenv.OK(t, err)
		letters = append(letters, whole)
	}
	return letters
}

// decide decides on a dead letter as the API does.
func (p *process) decide(ctx context.Context, row string, status engine.DeadLetterStatus) error {
	_, err := p.letters.Decide(ctx, Engine, row, engine.Decision{Status: status, By: "ann", At: p.now()})
	return err
}
