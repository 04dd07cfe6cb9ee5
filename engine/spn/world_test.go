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

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/enginetest"
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

// world outlives processes: storage, and Entra ID, which also has a password from elsewhere.
type world struct {
	*enginetest.World

	vault   *secrets.Development
	graph   *graphfake.Server
	outbox  *enginetest.Outbox
	foreign string   // key id
	names   []string // the registered consumers

	mu      sync.Mutex
	written bytes.Buffer // all output of processes, except to Entra ID and the vault
}

// newWorld makes a world, in a bubble of synctest whose clock it uses.
func newWorld(t *testing.T) *world {
	t.Helper()
	store := tables.NewMemory()
	w := &world{graph: graphfake.New(), vault: secrets.NewDevelopment(store), outbox: enginetest.NewOutbox(t, store, nil)}
	for _, table := range []string{secrets.DevelopmentTable, consumers.Table} {
		if err := store.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	w.graph.ListedAfter, w.graph.AcceptedAfter = 4*time.Second, 18*time.Second
	w.graph.AddApplication(application)
	w.foreign = w.graph.Add(application, "roundhouse/another.example/"+slot)
	var written tables.Store
	w.World = enginetest.New(t, enginetest.Config{Tables: store, Publish: w.outbox.Publish, MaxDeliveries: 100_000,
		Log: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Engines: func(s enginetest.Stores) []engine.Definition {
			return []engine.Definition{spn.Definition(w.stepsOver(t, s))}
		},
		Runtime: func(c *orchestrator.Config) {
			written = tablesTap{c.Tables, w}
			c.Tables, c.Queues = written, queuesTap{c.Queues, w}
		},
		Pipeline: func(c *engine.Config) {
			c.History, c.DeadLetters, c.Queues = engine.NewHistory(written, ""), engine.NewDeadLetters(written, ""), queuesTap{c.Queues, w}
		}})
	return w
}

// Write records the logs of processes.
func (w *world) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written.Write(text)
}

// tablesTap records all writes to storage.
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

// wire is the connection to Entra ID, with the plan's faults.
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
	answer := make(chan *http.Response, 1) // a late call has no receiver for its answer
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

// steps returns the steps of a process without faults.
func (w *world) steps(t *testing.T) *spn.Steps {
	t.Helper()
	return w.stepsOver(t, w.Restart(nil).Stores)
}

// stepsOver returns the steps of a process.
func (w *world) stepsOver(t *testing.T, s enginetest.Stores) *spn.Steps {
	t.Helper()
	options := &policy.ClientOptions{Transport: wire{w.graph, s.Intercept}}
	graph, graphErr := entra.NewGraph(graphfake.Address, w.graph.Credential(), options)
	login, loginErr := entra.NewLogin(graphfake.Address, graphfake.Tenant, graphfake.Address, options)
	vault := secrets.NewDevelopment(s.Tables)
	var steps *spn.Steps
	arrivals, arrivalsErr := consumers.New(consumers.Config{Engine: spn.Engine, Tables: s.Tables, Outbox: outbox.NewAdmin(w.outbox.Over(s.Tables)),
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

// eventID returns the id of an event in the outbox, as in the program.
func eventID(tenantID, eventType, key string) string {
	return outbox.Key(tenantID, "orchestration", key, eventType, "").String()
}

// run sends a message and delivers everything until the queues are empty.
func (w *world) run(body string) {
	w.Send(spn.Queue, body)
	w.Run()
}

// versions returns the versions of the application's secret.
func (w *world) versions(t *testing.T) []secrets.Version {
	t.Helper()
	versions, err := w.vault.Versions(t.Context(), secrets.Name(spn.Engine, application))
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

// ours returns the key ids of the engine's passwords.
func (w *world) ours() []string {
	var ours []string
	for id, name := range w.graph.Live(application) {
		if strings.HasPrefix(name, "roundhouse/"+owner+"/") {
			ours = append(ours, id)
		}
	}
	return ours
}

func (w *world) history() []engine.Entry { return w.History(spn.Engine, "c1") }

func (w *world) deadLetters() []engine.DeadLetter { return w.DeadLetters(spn.Engine) }

// checkSettled checks the world after a finished rotation of the slot.
func (w *world) checkSettled(t *testing.T) {
	t.Helper()
	if dead := w.deadLetters(); len(dead) != 0 {
		t.Fatalf("dead letters: %+v", dead)
	}
	runs := 0
	for _, e := range w.history() {
		if e.Operation != spn.OperationRotate {
			t.Errorf("the history shows the operation %s", e.Operation)
		}
		if e.RunStatus == engine.StatusSucceeded {
			runs++
		}
	}
	if runs != 1 {
		t.Errorf("%d runs succeeded, want one: %+v", runs, w.history())
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

// checkEvent checks that this key was announced once, an overlap before the end.
func (w *world) checkEvent(t *testing.T, keyID string) {
	t.Helper()
	published := w.Published()
	if len(published) == 0 || slices.ContainsFunc(published[1:], func(p orchestrator.Publication) bool { return p.Type != spn.EventRetiring }) {
		t.Fatalf("events: %+v, want one of the new secret, and then of the older ones", published)
	}
	e := published[0]
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

// checkSecrets searches for every value that was ever made in all output, events and records.
func (w *world) checkSecrets(t *testing.T) {
	t.Helper()
	exported, err := w.Restart(nil).Runtime.Export(t.Context(), spn.Engine+"-c1")
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		t.Fatal(err)
	}
	names, _, err := w.Blobs.List(t.Context(), "orchestrations", "", "")
	for _, name := range names {
		data, getErr := w.Blobs.Get(t.Context(), "orchestrations", name)
		exported, err = append(exported, data...), errors.Join(err, getErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(bytes.Clone(w.written.Bytes()), exported...)
	text = fmt.Appendf(text, "%+v", w.Published())
	for _, p := range w.Published() {
		text = append(text, p.Payload...)
	}
	if len(w.graph.Values()) < 2 || !bytes.Contains(text, []byte(application)) {
		t.Fatal("nothing was looked at")
	}
	if leaks := w.graph.Leaks(text); len(leaks) != 0 {
		t.Errorf("%d values of passwords show in what was written", len(leaks))
	}
}
