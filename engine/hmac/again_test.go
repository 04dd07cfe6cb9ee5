package hmac_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/services/secrets"
)

// A run that is canceled during the grace does not retire the older key: consumers may still sign with it.
func TestACanceledGraceRetiresNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(t)
		p.before(t)
		p.send(rotate)
		p.pass(time.Hour)
		if err := p.Runtime().Cancel(t.Context(), "hmac-c1", "not now"); err != nil {
			t.Fatal(err)
		}
		p.pass(48 * time.Hour)
		if diff := cmp.Diff(map[string]bool{"before": true, "now": true}, p.slots(t)); diff != "" || len(p.pending("c1")) != 0 {
			t.Errorf("usable (-want +got):\n%s", diff)
		}
	})
}

// A version that is disabled between two attempts, before it was announced, is replaced by the next attempt.
func TestTheNextAttemptDoesNotGoOnWithADisabledVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(t)
		p.before(t)
		p.send(rotate)
		applied := 0
		untold := &faults.Plan{Refuse: func(c faults.Call) bool {
			if c.Target == hmac.SlotsTable && c.Operation == "Apply" {
				applied++
				return applied > 1 // the first decides the slot
			}
			return false
		}}
		p.Restart(untold)
		p.Deliver()
		p.Restart(nil)
		vault := secrets.NewDevelopment(p.tables)
		versions, err := vault.Versions(t.Context(), secrets.Name(hmac.Engine, "i1"))
		if err != nil || len(versions) != 2 {
			t.Fatal(versions, err)
		}
		if err := vault.Disable(t.Context(), versions[1].Name, versions[1].Version); err != nil {
			t.Fatal(err)
		}
		p.pass(48 * time.Hour)
		if diff := cmp.Diff(map[string]bool{"before": false, "now": true}, p.slots(t)); diff != "" || len(p.pending("c1")) != 0 {
			t.Errorf("%d dead letters, usable (-want +got):\n%s", len(p.pending("c1")), diff)
		}
	})
}
