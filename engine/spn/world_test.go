package spn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/spn"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/graphfake"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/entra"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	application = "0b1f5a2e-7c55-4c2a-9d0f-3f0f6b1f7a11"
	owner       = "vault.example"
	slot        = "2026-11"
	overlap     = 6 * time.Hour
	removeAfter = 12 * time.Hour
	message     = `{"correlationId":"c1","engine":"spn","tenantId":"t1","input":{"applicationId":"` + application + `","slot":"` + slot + `"}}`
)

// visibility is for how long the miniature host hides a message that it hands out.
const visibility = 30 * time.Second

// world is what outlives processes: storage, and Entra ID, which also has a password that is not the engine's.
type world struct {
	tables  *tables.Memory
	blobs   *blobs.Memory
	queues  *queues.Memory
	vault   *secrets.Development
	graph   *graphfake.Server
	foreign string // key id
	// down says that the receiver of events refuses them, and names are the consumers that are registered.
	down  bool
	names []string

	mu        sync.Mutex
	written   bytes.Buffer // all that left a process, but for what went to Entra ID and into the vault
	published []orchestrator.Publication
	runtime   *orchestrator.Runtime // of the process that was made last
}

// newWorld makes a world; it belongs into a bubble of synctest, whose clock it goes by.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{tables: tables.NewMemory(), blobs: blobs.NewMemory(), queues: queues.NewMemory(), graph: graphfake.New()}
	w.vault = secrets.NewDevelopment(w.tables)
	for _, table := range []string{secrets.DevelopmentTable, consumers.Table} {
		if err := w.tables.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.outbox(t, w.tables).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.graph.ListedAfter, w.graph.AcceptedAfter = 4*time.Second, 18*time.Second
	w.graph.AddApplication(application)
	w.foreign = w.graph.Add(application, "roundhouse/another.example/"+slot)
	p := w.process(t, &faults.Plan{})
	if err := errors.Join(p.Prepare(t.Context()), w.runtime.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	return w
}

// Write takes what processes log.
func (w *world) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written.Write(text)
}

// listen records what is written to storage, before anything else happens to the call.
func (w *world) listen(s tables.Store) tables.Store { return tablesTap{s, w} }

type tablesTap struct {
	tables.Store
	w *world
}

func (s tablesTap) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	for _, op := range ops {
		fmt.Fprintf(s.w, "%s %s %s\n", table, op.Entity.Partition, op.Entity.Row)
		for name, value := range op.Entity.Properties {
			if raw, ok := value.([]byte); ok {
				value = string(raw)
			}
			fmt.Fprintf(s.w, "%s: %v\n", name, value)
		}
	}
	return s.Store.Apply(ctx, table, ops...)
}

type queuesTap struct {
	queues.Store
	w *world
}

func (s queuesTap) Send(ctx context.Context, queue string, body []byte, delay time.Duration) (string, error) {
	fmt.Fprintf(s.w, "%s %s\n", queue, body)
	return s.Store.Send(ctx, queue, body, delay)
}

// wire is the way to Entra ID, on which the plan's faults happen, too.
type wire struct {
	graph     *graphfake.Server
	intercept faults.Interceptor
}

func (x wire) Do(req *http.Request) (resp *http.Response, err error) {
	var body []byte
	if req.Body != nil {
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	call := faults.Call{Service: "entra", Operation: req.Method, Target: req.URL.Path}
	answer := make(chan *http.Response, 1) // a call that is carried out late has nobody to answer
	err = x.intercept(req.Context(), call, func(ctx context.Context) error {
		sent := req.Clone(ctx)
		sent.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := x.graph.Do(sent)
		if err == nil {
			answer <- resp
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-answer, nil
}

// steps are a process's, whose calls pass through an interceptor.
func (w *world) steps(t *testing.T, intercept faults.Interceptor) *spn.Steps {
	t.Helper()
	options := &policy.ClientOptions{Transport: wire{w.graph, intercept}}
	graph, graphErr := entra.NewGraph(graphfake.Address, w.graph.Credential(), options)
	login, loginErr := entra.NewLogin(graphfake.Address, graphfake.Tenant, graphfake.Address, options)
	store := faults.Tables(w.tables, intercept)
	vault := secrets.NewDevelopment(store)
	var steps *spn.Steps
	arrivals, arrivalsErr := consumers.New(consumers.Config{Engine: spn.Engine, Tables: store, Outbox: outbox.NewAdmin(w.outbox(t, store)),
		Targets: map[string]consumers.Target{application: {Names: w.names}},
		Knows: func(ctx context.Context, target, version string) (bool, error) {
			return steps.Knows(ctx, target, version)
		}})
	steps, err := spn.New(spn.Config{Directory: graph, Login: login, Vault: vault, Values: vault, Owner: owner, Overlap: overlap, RemoveAfter: removeAfter,
		Arrivals: arrivals, EventID: eventID})
	err = errors.Join(err, arrivalsErr)
	if err := errors.Join(graphErr, loginErr, err); err != nil {
		t.Fatal(err)
	}
	return steps
}

// process is a pipeline over the world, as one process would have it.
func (w *world) process(t *testing.T, plan *faults.Plan) *engine.Pipeline {
	t.Helper()
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d := spn.Definition(w.steps(t, plan.Intercept))
	store, sends := faults.Tables(w.listen(w.tables), plan.Intercept), faults.Queues(queuesTap{w.queues, w}, plan.Intercept)
	var p *engine.Pipeline
	rt, err := orchestrator.New(orchestrator.Config{Tables: store, Blobs: faults.Blobs(w.blobs, plan.Intercept), Queues: sends, Log: log,
		Publish:       w.publishTo(t),
		Ended:         func(ctx context.Context, out orchestrator.Outcome) error { return p.Ended(ctx, out) },
		Orchestrators: []orchestrator.AnyOrchestrator{d.Orchestrator}, Activities: append(d.Operations, d.Activities...)})
	if err != nil {
		t.Fatal(err)
	}
	w.runtime = rt
	p, err = engine.NewPipeline(engine.Config{Definitions: []engine.Definition{d}, Runtime: rt, Log: log, HostMaxDequeueCount: 8,
		History: engine.NewHistory(store, ""), DeadLetters: engine.NewDeadLetters(store, ""), Queues: sends})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outbox is the outbox of this world, as a process sees it.
func (w *world) outbox(t *testing.T, store tables.Store) *outbox.Outbox {
	t.Helper()
	o, err := outbox.New(outbox.Config{Tables: store, Queues: queues.NewMemory(), Blobs: w.blobs, Options: outbox.DefaultOptions(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Deliver takes an event, unless the receiver is down.
func (w *world) Deliver(context.Context, outbox.Event) error {
	if w.down {
		return errors.New("the receiver is down")
	}
	return nil
}

// send delivers what is due in the outbox.
func (w *world) send(t *testing.T) {
	t.Helper()
	router, routerErr := outbox.NewRouter([]outbox.Route{{EventType: "*", Destination: "receiver"}}, outbox.Destinations{"receiver": w})
	dispatcher, err := outbox.NewDispatcher(w.outbox(t, w.tables), outbox.DispatcherConfig{Router: router})
	if err := errors.Join(routerErr, err); err != nil {
		t.Fatal(err)
	}
	if _, err := dispatcher.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// eventID is the id of an event in the outbox, as the program makes it.
func eventID(tenantID, eventType, key string) string {
	return outbox.Key(tenantID, "orchestration", key, eventType, "").String()
}

// publishTo adds events to the outbox, which are delivered at once.
func (w *world) publishTo(t *testing.T) func(ctx context.Context, events []orchestrator.Publication) error {
	return func(ctx context.Context, events []orchestrator.Publication) error {
		writer := outbox.NewWriter(w.outbox(t, w.tables))
		for _, e := range events {
			_, err := writer.Add(ctx, outbox.Message{TenantID: e.TenantID, EventType: e.Type, Payload: e.Payload, OrderKey: e.OrderKey,
				Key: writer.Key(e.TenantID, "orchestration", e.Key, e.Type, "")})
			if err != nil {
				return err
			}
		}
		w.publish(events)
		w.send(t)
		return nil
	}
}

func (w *world) publish(events []orchestrator.Publication) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		if !slices.ContainsFunc(w.published, func(p orchestrator.Publication) bool { return p.TenantID == e.TenantID && p.Key == e.Key }) {
			w.published = append(w.published, e)
		}
	}
}

// run sends a message and delivers everything, as the Functions host would, until the queues are empty. When the plan has
// a process die, another one goes on.
func (w *world) run(t *testing.T, body string, plan *faults.Plan) {
	t.Helper()
	if _, err := w.queues.Send(t.Context(), spn.Queue, []byte(body), 0); err != nil {
		t.Fatal(err)
	}
	p := w.process(t, plan)
	for late := range 2 {
		if late == 1 {
			plan.Wait()
		}
		for deliveries := 0; w.deliver(t, p); deliveries++ {
			if deliveries > 100_000 {
				t.Fatal("the message does not come to rest")
			}
			if plan.Crashed() {
				p, plan = w.process(t, &faults.Plan{}), &faults.Plan{}
			}
		}
	}
}

// deliver delivers what is visible, or waits when nothing is; false when the queues are empty.
func (w *world) deliver(t *testing.T, p *engine.Pipeline) bool {
	t.Helper()
	handlers := map[string]func(context.Context, engine.Delivery) error{spn.Queue: p.Handle, "orchestration-signals": p.HandleSignal,
		"orchestration-schedules": p.HandleSignal, "orchestration-activities": p.HandleActivities}
	left, idle := 0, true
	for queue, handle := range handlers {
		n, lengthErr := w.queues.Length(t.Context(), queue)
		messages, err := w.queues.Receive(t.Context(), queue, 1, visibility)
		if err := errors.Join(lengthErr, err); err != nil {
			t.Fatal(err)
		}
		left += n
		if len(messages) == 0 {
			continue
		}
		idle = false
		m := messages[0]
		if err := handle(t.Context(), engine.Delivery{Queue: queue, ID: m.ID, Body: queues.Decode(m.Text), DequeueCount: int(m.DequeueCount), InsertedAt: m.InsertedAt}); err != nil {
			fmt.Fprintln(w, err)
			continue
		}
		if err := w.queues.Delete(t.Context(), queue, m.ID, m.PopReceipt); err != nil && !errors.Is(err, queues.ErrNotFound) && !errors.Is(err, queues.ErrPopReceipt) {
			t.Fatal(err)
		}
	}
	if idle && left > 0 {
		time.Sleep(visibility) // virtual
	}
	return left > 0
}

// versions are those of the application's secret.
func (w *world) versions(t *testing.T) []secrets.Version {
	t.Helper()
	versions, err := w.vault.Versions(t.Context(), secrets.Name(spn.Engine, application))
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

// ours are the key ids of the engine's passwords.
func (w *world) ours() []string {
	var ours []string
	for id, name := range w.graph.Live(application) {
		if strings.HasPrefix(name, "roundhouse/"+owner+"/") {
			ours = append(ours, id)
		}
	}
	return ours
}

func (w *world) history(t *testing.T) []engine.Entry {
	t.Helper()
	entries, err := engine.NewHistory(w.tables, "").Run(t.Context(), spn.Engine, "c1")
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func (w *world) deadLetters(t *testing.T) []engine.DeadLetter {
	t.Helper()
	store := engine.NewDeadLetters(w.tables, "")
	page, err := store.List(t.Context(), engine.DeadLetterFilter{Engines: []string{spn.Engine}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var all []engine.DeadLetter
	for _, item := range page.DeadLetters {
		d, err := store.Get(t.Context(), item.Engine, item.RowKey)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// checkSettled holds the world against a finished rotation of the slot.
func (w *world) checkSettled(t *testing.T) {
	t.Helper()
	if dead := w.deadLetters(t); len(dead) != 0 {
		t.Fatalf("dead letters: %+v", dead)
	}
	runs := 0
	for _, e := range w.history(t) {
		if e.Operation != spn.OperationRotate {
			t.Errorf("the history shows the operation %s", e.Operation)
		}
		if e.RunStatus == engine.StatusSucceeded {
			runs++
		}
	}
	if runs != 1 {
		t.Errorf("%d runs succeeded, want one: %+v", runs, w.history(t))
	}
	ours := w.ours()
	if len(ours) != 1 || w.graph.Live(application)[w.foreign] == "" {
		t.Fatalf("passwords: %v, want that of another and one of ours", w.graph.Live(application))
	}
	for _, v := range w.versions(t) {
		if v.Enabled != (v.Tags[spn.TagKey] == ours[0]) {
			t.Errorf("version %+v; the application's password is %s", v, ours[0])
		}
		if !v.Enabled {
			continue
		}
		value, err := w.vault.Value(t.Context(), v.Name, v.Version)
		if err != nil || !w.graph.Accepts(application, value) {
			t.Errorf("the secret store holds a value that is not accepted: %v", err)
		}
	}
	w.checkEvent(t, ours[0])
}

// checkEvent: consumers were told of this key, once, an overlap before the end.
func (w *world) checkEvent(t *testing.T, keyID string) {
	t.Helper()
	if len(w.published) == 0 || slices.ContainsFunc(w.published[1:], func(p orchestrator.Publication) bool { return p.Type != spn.EventRetiring }) {
		t.Fatalf("events: %+v, want one of the new secret, and then of the older ones", w.published)
	}
	e := w.published[0]
	var rotated spn.Rotated
	if err := json.Unmarshal(e.Payload, &rotated); err != nil {
		t.Fatal(err)
	}
	if e.Type != spn.EventRotated || e.TenantID != "t1" || e.CorrelationID != "c1" || rotated.KeyID != keyID || rotated.ApplicationID != application ||
		rotated.Slot != slot || rotated.InstanceID != engine.PublisherInstance || rotated.ExpiresAtUtc.Before(rotated.RetireAtUtc) {
		t.Errorf("event %+v with %s", e, e.Payload)
	}
	if !slices.ContainsFunc(w.versions(t), func(v secrets.Version) bool {
		return v.Version == rotated.Version && v.Name == rotated.SecretName && v.Tags[spn.TagKey] == keyID && v.Created.Equal(rotated.CreatedAtUtc)
	}) {
		t.Errorf("the event names no version of the secret: %s", e.Payload)
	}
}

// checkSecrets looks for every value that was ever made in all that was written, published and recorded.
func (w *world) checkSecrets(t *testing.T) {
	t.Helper()
	w.process(t, &faults.Plan{}) // the last one may be dead
	exported, err := w.runtime.Export(t.Context(), spn.Engine+"-c1")
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		t.Fatal(err)
	}
	names, _, err := w.blobs.List(t.Context(), "orchestrations", "", "")
	for _, name := range names {
		data, getErr := w.blobs.Get(t.Context(), "orchestrations", name)
		exported, err = append(exported, data...), errors.Join(err, getErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(bytes.Clone(w.written.Bytes()), exported...)
	text = fmt.Appendf(text, "%+v", w.published)
	for _, p := range w.published {
		text = append(text, p.Payload...)
	}
	if len(w.graph.Values()) < 2 || !bytes.Contains(text, []byte(application)) {
		t.Fatal("nothing was looked at")
	}
	if leaks := w.graph.Leaks(text); len(leaks) != 0 {
		t.Errorf("%d values of passwords show in what was written", len(leaks))
	}
}
