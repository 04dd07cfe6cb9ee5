package registry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/enginetest"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/tables"
)

// Every storage call fails in every way while another writer interferes: a reported success was made once, an unknown
// outcome is reported, and a repeat after a crash has the same result.
func TestFaultsAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, rivals := range []int{0, 1, 300} {
		t.Run(fmt.Sprint("rivals-", rivals), func(t *testing.T) {
			skip := func(_ int, _ enginetest.Call, f enginetest.Fault) bool { return rivals > 1 && f != faults.Applied }
			enginetest.FailEverywhere(t, skip, func(t *testing.T, plan *enginetest.Plan) { lockAndCount(t, plan, rivals) })
		})
	}
}

// lockAndCount creates, locks, counts and unlocks in a process with a plan, and continues in another one after a
// crash. After each change of the first, rivals that know the job change the document, too.
func lockAndCount(t *testing.T, plan *faults.Plan, rivals int) {
	t.Helper()
	store := tables.NewMemory()
	aside := registry.New(store, "")
	if err := aside.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	disturbed := false
	disturb := func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		err := plan.Intercept(ctx, c, next)
		if i, bad := aside.Get(ctx, instance); c.Operation == "Apply" && !disturbed && bad == nil && i.Lock.JobID == "job" && plan.Done() {
			disturbed = true
			for range rivals {
				if _, err := aside.Update(ctx, instance, "job", count); err != nil {
					t.Error(err)
				}
			}
		}
		return err
	}
	r := registry.New(faults.Tables(store, disturb), "")
	repeat := func(do func(*registry.Registry) error) {
		err := do(r)
		if !plan.Crashed() && err != nil {
			t.Errorf("no crash, but: %v", err)
		}
		if plan.Crashed() {
			if r = aside; do(r) != nil {
				t.Error("the next process fails, too")
			}
		}
	}
	repeat(func(r *registry.Registry) error {
		_, err := r.Create(t.Context(), registry.Instance{InstanceID: instance})
		if plan.Crashed() && errors.Is(err, registry.ErrExists) {
			return nil
		}
		return err
	})
	repeat(func(r *registry.Registry) error {
		_, err := r.Acquire(t.Context(), instance, "job", time.Hour)
		return err
	})
	before := plan.Crashed()
	_, err := r.Update(t.Context(), instance, "job", count)
	died := plan.Crashed() && !before
	i, bad := aside.Get(t.Context(), instance)
	if bad != nil {
		t.Fatal(bad)
	}
	others := 0
	if disturbed {
		others = rivals
	}
	own := counted(t, i) - others
	unknown := died || (rivals > 256 && errors.Is(err, tables.ErrOutcomeUnknown))
	if (!unknown && (err != nil || own != 1)) || own < 0 || own > 1 {
		t.Errorf("%d changes of %d others and this one: %v", counted(t, i), others, err)
	}
	repeat(func(r *registry.Registry) error { return r.Release(t.Context(), instance, "job") })
	plan.Wait()
	if i, err = aside.Get(t.Context(), instance); err != nil || i.Lock.JobID != "" {
		t.Errorf("at last: lock %+v, %v", i.Lock, err)
	}
}
