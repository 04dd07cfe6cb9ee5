package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/tables"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store tables.Store, table string) {
		c := newClock()
		r := open(t, store, table, c)
		if _, err := r.Get(t.Context(), instance); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("get before create: %v", err)
		}
		if i := create(t, r, instance); i.Version != 1 || i.Lock.Held(c.now()) {
			t.Errorf("created: %+v", i)
		}
		if _, err := r.Create(t.Context(), registry.Instance{InstanceID: instance}); !errors.Is(err, registry.ErrExists) {
			t.Errorf("create again: %v", err)
		}
		checkLock(t, r, c)
		i, err := r.Get(t.Context(), instance)
		if err != nil || counted(t, i) != 3 || i.Lock.JobID != "" {
			t.Errorf("at last: %+v %v, count %d", i, err, counted(t, i))
		}
		same, err := r.Update(t.Context(), instance, "", func(*registry.Instance) error { return nil })
		if err != nil || same.Version != i.Version {
			t.Errorf("a change of nothing made version %d of %d, %v", same.Version, i.Version, err)
		}
		checkPages(t, r)
	})
}

// checkLock checks a sequence of all lock operations.
func checkLock(t *testing.T, r *registry.Registry, c *clock) {
	t.Helper()
	ctx := t.Context()
	locked, err := r.Acquire(ctx, instance, "one", 90*time.Minute)
	if want := (registry.Lock{JobID: "one", Duration: 90 * time.Minute, Until: c.now().Add(90 * time.Minute)}); err != nil || locked.Lock != want {
		t.Errorf("acquire: %+v %v", locked.Lock, err)
	}
	again, err := r.Acquire(ctx, instance, "one", time.Minute)
	if err != nil || again.Lock.Until != locked.Lock.Until {
		t.Errorf("acquired again, it lasts until %v, %v", again.Lock.Until, err)
	}
	_, err = r.Acquire(ctx, instance, "two", 0)
	lockedBy(t, "acquire by another", err, "one")
	_, err = r.Renew(ctx, instance, "two", 0)
	lockedBy(t, "renew by another", err, "one")
	_, err = r.Update(ctx, instance, "two", count)
	lockedBy(t, "update by another", err, "one")
	_, err = r.Update(ctx, instance, "", count)
	lockedBy(t, "update without a lock", err, "one")
	if err := r.Release(ctx, instance, "two"); err != nil {
		t.Errorf("release by another: %v", err)
	}
	if _, err = r.Update(ctx, instance, "one", count); err != nil {
		t.Errorf("update by the holder: %v", err)
	}
	c.pass(91 * time.Minute)
	_, err = r.Update(ctx, instance, "one", count)
	lockedBy(t, "update after the lock expired", err, "")
	if renewed, err := r.Renew(ctx, instance, "one", time.Hour); err != nil || !renewed.Lock.Held(c.now()) {
		t.Errorf("renew what nobody touched: %v", err)
	}
	c.pass(2 * time.Hour)
	if _, err := r.Update(ctx, instance, "", count); err != nil {
		t.Errorf("update without a lock after it expired: %v", err)
	}
	_, err = r.Renew(ctx, instance, "one", time.Hour)
	lockedBy(t, "renew after a change", err, "")
	if _, err := r.Acquire(ctx, instance, "two", 0); err != nil {
		t.Errorf("acquire: %v", err)
	}
	if _, err := r.Update(ctx, instance, "two", count); err != nil {
		t.Errorf("update: %v", err)
	}
	for range 2 {
		if err := r.Release(ctx, instance, "two"); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	_, err = r.Update(ctx, instance, "two", count)
	lockedBy(t, "update after the release", err, "")
}

func checkPages(t *testing.T, r *registry.Registry) {
	t.Helper()
	want := []string{instance}
	for i := range 6 {
		want = append(want, create(t, r, fmt.Sprint("i", i)).InstanceID)
	}
	var got []string
	page := registry.Page{}
	for first := true; first || page.Next != ""; first = false {
		var err error
		if page, err = r.List(t.Context(), 3, page.Next); err != nil || len(page.Instances) == 0 {
			t.Fatalf("a page of %d, %v", len(page.Instances), err)
		}
		for _, i := range page.Instances {
			got = append(got, i.InstanceID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	r := open(t, tables.NewMemory(), "", newClock())
	create(t, r, instance)
	ctx := t.Context()
	update := func(change func(*registry.Instance)) error {
		_, err := r.Update(ctx, instance, "", func(i *registry.Instance) error { change(i); return nil })
		return err
	}
	acquire := func(id, job string, d time.Duration) error { _, err := r.Acquire(ctx, id, job, d); return err }
	make := func(i registry.Instance) error { _, err := r.Create(ctx, i); return err }
	list := func(n int) error { _, err := r.List(ctx, n, ""); return err }
	broken := errors.New("broken")
	_, own := r.Update(ctx, instance, "", func(*registry.Instance) error { return broken })
	for name, c := range map[string]struct{ got, want error }{
		"no id":                  {make(registry.Instance{}), registry.ErrInvalid},
		"a long id":              {make(registry.Instance{InstanceID: strings.Repeat("x", 600)}), registry.ErrInvalid},
		"an id that is not text": {make(registry.Instance{InstanceID: "\xff"}), registry.ErrInvalid},
		"created locked":         {make(registry.Instance{InstanceID: "x", Lock: registry.Lock{JobID: "j"}}), registry.ErrInvalid},
		"created with a version": {make(registry.Instance{InstanceID: "x", Version: 2}), registry.ErrInvalid},
		"the id changed":         {update(func(i *registry.Instance) { i.InstanceID = "other" }), registry.ErrInvalid},
		"the lock changed":       {update(func(i *registry.Instance) { i.Lock.JobID = "other" }), registry.ErrInvalid},
		"the version changed":    {update(func(i *registry.Instance) { i.Version++ }), registry.ErrInvalid},
		"the change fails":       {own, broken},
		"no job":                 {acquire(instance, "", 0), registry.ErrInvalid},
		"a negative duration":    {acquire(instance, "j", -1), registry.ErrInvalid},
		"no instance":            {acquire("other", "j", 0), registry.ErrNotFound},
		"a long page":            {list(1001), registry.ErrInvalid},
		"a known field":          {(&registry.Instance{}).SetField("instanceLock", 1), registry.ErrInvalid},
		"a field that is none":   {(&registry.Instance{}).SetField("x", func() {}), registry.ErrInvalid},
		"release of no instance": {r.Release(ctx, "other", "j"), nil},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if i, err := r.Get(ctx, instance); err != nil || i.Version != 1 {
		t.Errorf("after all of that: version %d, %v", i.Version, err)
	}
}

// Unknown fields survive changes by writers that do not know them, in nested objects, too.
func TestUnknownFieldsSurvive(t *testing.T) {
	t.Parallel()
	text := `{"instanceId":"i1","big":12345678901234567890,"engineTablesConfig":{"storageAccountName":"a","dlqTableName":"engineDlq",
		"historyTableName":"engineHistory","retentionDays":90,"region":"west"},"instanceLock":{"lockJobId":"","lockDurationSeconds":3600,"lockUntilUtc":"","reason":"x"}}`
	var i registry.Instance
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		t.Fatal(err)
	}
	i.Lock = registry.Lock{}
	c := newClock()
	r := open(t, tables.NewMemory(), "", c)
	if _, err := r.Create(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Acquire(t.Context(), "i1", "job", 0); err != nil {
		t.Fatal(err)
	}
	got, err := r.Update(t.Context(), "i1", "job", func(i *registry.Instance) error {
		i.EngineTablesConfig.RetentionDays = 30
		return i.SetField("version", "2.0")
	})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(got)
	want := `{"big":12345678901234567890,"engineTablesConfig":{"dlqTableName":"engineDlq","historyTableName":"engineHistory","region":"west","retentionDays":30,"storageAccountName":"a"},` +
		`"instanceId":"i1","instanceLock":{"lockDurationSeconds":3600,"lockJobId":"job","lockUntilUtc":"2026-11-21T13:00:00.123456Z","reason":"x"},"registryVersion":3,"version":"2.0"}`
	if diff := cmp.Diff(want, string(stored)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := got.SetField("version", nil); err != nil {
		t.Error(err)
	}
	if ok, err := got.Field("version", new(string)); ok || err != nil {
		t.Errorf("a field that was taken away: %v %v", ok, err)
	}
}

// Many concurrent writers lose no change, with and without the lock.
func TestNoLostUpdate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store tables.Store, table string) {
		const writers = 16
		rounds := 100
		if _, memory := store.(*tables.Memory); !memory {
			rounds = 3 // the emulator is slow
		}
		r := open(t, store, table, newClock())
		create(t, r, instance)
		if _, err := r.Acquire(t.Context(), instance, "job", 0); err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		var unknown atomic.Int32 // on a machine so busy that hundreds of writes pass between a request and its answer
		for range writers {
			done.Go(func() {
				for range rounds {
					switch _, err := r.Update(t.Context(), instance, "job", count); {
					case errors.Is(err, tables.ErrOutcomeUnknown):
						unknown.Add(1)
					case err != nil:
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		i, err := r.Get(t.Context(), instance)
		n := counted(t, i)
		if err != nil || n > writers*rounds || n < writers*rounds-int(unknown.Load()) || i.Version != int64(n+2) {
			t.Errorf("%d of %d changes in version %d, %d unknown, %v", n, writers*rounds, i.Version, unknown.Load(), err)
		}
	})
}
