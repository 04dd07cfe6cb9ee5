package registry_test

import (
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/tables"
)

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

const instance = "/subscriptions/s1/resourceGroups/größe #1?"

// onBoth runs a test over memory and over Azurite.
func onBoth(t *testing.T, test func(t *testing.T, store tables.Store, table string)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, tables.NewMemory(), registry.DefaultTable)
	})
	t.Run("azurite", func(t *testing.T) {
		t.Parallel()
		store, err := azure.NewTables(storage.Account(t))
		if err != nil {
			t.Fatal(err)
		}
		test(t, store, azuritetest.Name("registry"))
	})
}

// clock is set by hand.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)} }

func (c *clock) now() time.Time { return c.at }

func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func open(t testing.TB, store tables.Store, table string, c *clock) *registry.Registry {
	t.Helper()
	r := registry.New(store, table)
	r.Now = c.now
	if err := r.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func create(t testing.TB, r *registry.Registry, id string) registry.Instance {
	t.Helper()
	i, err := r.Create(t.Context(), registry.Instance{InstanceID: id, TenantID: "t1"})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// count returns the change of the tests: it increments a field.
func count(i *registry.Instance) error {
	n := 0
	if _, err := i.Field("count", &n); err != nil {
		return err
	}
	return i.SetField("count", n+1)
}

func counted(t testing.TB, i registry.Instance) int {
	t.Helper()
	n := 0
	if _, err := i.Field("count", &n); err != nil {
		t.Error(err)
	}
	return n
}

// lockedBy checks that err names the holder; "" for a free lock.
func lockedBy(t testing.TB, what string, err error, holder string) {
	t.Helper()
	e, ok := errors.AsType[*registry.LockedError](err)
	if !ok || !errors.Is(err, registry.ErrLocked) || e.Holder != holder || e.Until.IsZero() == (holder != "") {
		t.Errorf("%s: %v, want it locked by %q", what, err, holder)
	}
}
