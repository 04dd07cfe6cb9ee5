package hmac_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/engine/consumers"
	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	instance = "/subscriptions/s1/resourceGroups/größe #1?"
	slot     = "2026-11-21T00"
)

var start = time.Date(2026, 11, 21, 0, 0, 0, 123456789, time.UTC)

// world is the storage that processes share. Its clock does not advance unless a test moves it, so that creation
// times never order versions.
type world struct {
	clock  func() time.Time
	timing *hmac.Timing
	vault  *secrets.Development
	tables *tables.Memory
	outbox *enginetest.Outbox
	random *recorder
	names  []string // the registered consumers
}

func newWorld(t testing.TB) *world {
	t.Helper()
	store := tables.NewMemory()
	for _, table := range []string{secrets.DevelopmentTable, hmac.SlotsTable, consumers.Table} {
		if err := store.CreateTable(t.Context(), table); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{clock: func() time.Time { return start }, vault: secrets.NewDevelopment(store), tables: store,
		random: &recorder{source: rand.NewChaCha8([32]byte{1})}}
	now := func() time.Time { return w.clock() }
	w.vault.Now, w.outbox = now, enginetest.NewOutbox(t, store, now)
	return w
}

// publisher publishes through the outbox, as the program does, and events are delivered immediately.
type publisher struct {
	*outbox.Writer
	w *world
}

// ID returns the id of an event in the outbox.
func (p publisher) ID(e hmac.Event) string {
	return p.Key(e.TenantID, e.Category, e.Entity, e.Kind, e.Version).String()
}

func (p publisher) Publish(ctx context.Context, e hmac.Event) (string, error) {
	added, err := p.Add(ctx, outbox.Message{TenantID: e.TenantID, EventType: e.Type, Payload: e.Payload, OrderKey: e.OrderKey, CorrelationID: e.CorrelationID,
		Key: p.Key(e.TenantID, e.Category, e.Entity, e.Kind, e.Version)})
	if added.PayloadDiffers {
		err = errors.Join(err, errors.New("two events have one key"))
	}
	if err == nil {
		p.w.outbox.Sweep()
	}
	return added.ID, err
}

// arrivals returns the consumers of a process that reaches storage through a decorator.
func (w *world) arrivals(t testing.TB, store tables.Store, steps func() *hmac.Steps) *consumers.Consumers {
	t.Helper()
	c, err := consumers.New(consumers.Config{Engine: hmac.Engine, Tables: store, Outbox: outbox.NewAdmin(w.outbox.Over(store)),
		Targets: map[string]consumers.Target{instance: {Names: w.names}, "i1": {Names: w.names}}, Now: func() time.Time { return w.clock() },
		Knows: func(ctx context.Context, target, version string) (bool, error) {
			return steps().Knows(ctx, target, version)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// steps returns a process over this world.
func (w *world) steps(t testing.TB) *hmac.Steps {
	t.Helper()
	return w.stepsOver(t, w.vault, w.tables)
}

// stepsOver returns a process that reaches this world through decorators.
func (w *world) stepsOver(t testing.TB, vault secrets.Store, store tables.Store) *hmac.Steps {
	t.Helper()
	var steps *hmac.Steps
	arrivals := w.arrivals(t, store, func() *hmac.Steps { return steps })
	steps, err := hmac.New(hmac.Config{Vault: vault, Tables: store, Publisher: publisher{outbox.NewWriter(w.outbox.Over(store)), w}, Arrivals: arrivals, Random: w.random,
		Timing: w.timing, Now: func() time.Time { return w.clock() }})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// enabled lists the enabled versions of a slot.
func (w *world) enabled(t testing.TB, slot string) []secrets.Version {
	t.Helper()
	versions, err := w.vault.Versions(t.Context(), secrets.Name(hmac.Engine, instance))
	if err != nil {
		t.Fatal(err)
	}
	var out []secrets.Version
	for _, v := range versions {
		if v.Enabled && v.Tags[hmac.TagSlot] == slot {
			out = append(out, v)
		}
	}
	return out
}

// rows reads an instance's rows of a table.
func (w *world) rows(t testing.TB, table string) []tables.Entity {
	t.Helper()
	page, err := w.tables.Query(t.Context(), table, tables.Query{Partition: tables.EscapeKey(instance)})
	if err != nil || page.Next != "" {
		t.Fatalf("query %s: %v (next %q)", table, err, page.Next)
	}
	return page.Entities
}

// checkSettled checks the world after a finished rotation.
func (w *world) checkSettled(t testing.TB, out hmac.RotateOutput) {
	t.Helper()
	left := w.enabled(t, out.Slot)
	if len(left) != 1 || left[0].Version != out.Version {
		t.Errorf("enabled versions of slot %s: %v, want %s alone", out.Slot, left, out.Version)
	}
	if key, err := w.vault.Value(t.Context(), out.SecretName, out.Version); err != nil || len(key) != hmac.KeySize {
		t.Errorf("the key has %d bytes, %v; want %d", len(key), err, hmac.KeySize)
	}
}

// checkSecret searches for every key that was drawn in all visible texts and rows of the world.
func (w *world) checkSecret(t testing.TB, seen ...any) {
	t.Helper()
	seen = append(seen, w.rows(t, hmac.SlotsTable), w.outbox.Events())
	versions, err := w.vault.Versions(t.Context(), secrets.Name(hmac.Engine, instance))
	seen = append(seen, versions, err)
	var text strings.Builder
	for _, s := range seen {
		document, err := json.Marshal(s)
		fmt.Fprintf(&text, "%+v %#v %s %v\n", s, s, document, err)
	}
	for _, key := range w.random.keys() {
		for _, form := range []string{string(key), hex.EncodeToString(key), strings.ToUpper(hex.EncodeToString(key)), fmt.Sprint(key),
			base64.RawStdEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key)} {
			if strings.Contains(text.String(), form) {
				t.Errorf("a key shows in: %s", text.String())
			}
		}
	}
}

// recorder is a source of keys that records them.
type recorder struct {
	mu     sync.Mutex
	source io.Reader
	drawn  [][]byte
}

func (r *recorder) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.source.Read(p)
	r.drawn = append(r.drawn, append([]byte(nil), p[:n]...))
	return n, err
}

func (r *recorder) keys() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][]byte(nil), r.drawn...)
}

// vaultHook is the vault with a hook before each call; the hook makes the call itself, or not.
type vaultHook struct {
	secrets.Store
	around func(call string, do func() error) error
}

func (h vaultHook) Versions(ctx context.Context, name string) (versions []secrets.Version, err error) {
	err = h.around("Versions", func() error { versions, err = h.Store.Versions(ctx, name); return err })
	return versions, err
}

func (h vaultHook) Add(ctx context.Context, name string, value []byte, tags map[string]string) (v secrets.Version, err error) {
	err = h.around("Add", func() error { v, err = h.Store.Add(ctx, name, value, tags); return err })
	return v, err
}

func (h vaultHook) Disable(ctx context.Context, name, version string) error {
	return h.around("Disable", func() error { return h.Store.Disable(ctx, name, version) })
}

// tablesHook does the same for the tables.
type tablesHook struct {
	tables.Store
	around func(call string, do func() error) error
}

func (h tablesHook) Get(ctx context.Context, table string, key tables.Key) (e tables.Entity, err error) {
	err = h.around("Get", func() error { e, err = h.Store.Get(ctx, table, key); return err })
	return e, err
}

func (h tablesHook) Query(ctx context.Context, table string, q tables.Query) (p tables.Page, err error) {
	err = h.around("Query", func() error { p, err = h.Store.Query(ctx, table, q); return err })
	return p, err
}

func (h tablesHook) Apply(ctx context.Context, table string, ops ...tables.Op) error {
	call := map[tables.OpKind]string{tables.OpInsert: "Insert", tables.OpReplace: "Replace"}[ops[0].Kind]
	return h.around(call, func() error { return h.Store.Apply(ctx, table, ops...) })
}
