package main

import (
	"errors"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

func TestInstances(t *testing.T) {
	t.Parallel()
	documents := registry.New(tables.NewMemory(), "")
	testenv.OK(t, documents.CreateTable(t.Context()))
	r := instances{documents}
	activate := func(i *provisioning.Instance) error {
		i.State = provisioning.StateActive
		return nil
	}
	state := func(want provisioning.State) {
		t.Helper()
		document := testenv.Must(documents.Get(t.Context(), "i"))(t)
		var i provisioning.Instance
		if _, err := document.Field(provisioningField, &i); err != nil || i.State != want || document.TenantID != "contoso" {
			t.Errorf("%+v of %s, %v; want it %s", i, document.TenantID, err, want)
		}
	}
	if err := r.Update(t.Context(), "i", activate); !errors.Is(err, provisioning.ErrNotRegistered) {
		t.Errorf("an instance that is not there: %v", err)
	}
	if err := r.Create(t.Context(), provisioning.Instance{ID: "i", TenantID: "contoso", State: provisioning.StateProvisioning}); err != nil {
		t.Fatal(err)
	}
	if err := r.Create(t.Context(), provisioning.Instance{ID: "i"}); !errors.Is(err, provisioning.ErrRegistered) {
		t.Errorf("an instance that is there: %v", err)
	}
	testenv.Must(documents.Acquire(t.Context(), "i", "an update", time.Hour))(t)
	err := r.Update(t.Context(), "i", activate)
	if locked, ok := errors.AsType[*provisioning.LockedError](err); !ok || locked.Holder != "an update" || time.Until(locked.Until) < 30*time.Minute {
		t.Errorf("a locked instance: %v", err)
	}
	state(provisioning.StateProvisioning)
	testenv.OK(t, documents.Release(t.Context(), "i", "an update"))
	if err := r.Update(t.Context(), "i", activate); err != nil {
		t.Error(err)
	}
	state(provisioning.StateActive)
}
