package acceptance

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

// testAudit kills the handler at every storage request of a start and of a command over HTTP. The audit log has the
// principal of every change that storage has.
func (p *platform) testAudit(t *testing.T) {
	log := audit.Log{Tables: p.tables}
	entries := func(id string) []audit.Entry {
		t.Helper()
		page := testenv.Must(log.List(t.Context(), audit.Filter{Target: "orchestrations/" + id}, 10, ""))(t)
		return page.Entries
	}
	there := func(id string) bool {
		t.Helper()
		_, err := p.tables.Get(t.Context(), "orchestrations", tables.Key{Partition: tables.EscapeKey(id), Row: "status"})
		if err != nil && !errors.Is(err, tables.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	start := func(id string) (status int) {
		status, _ = p.ask(t, http.MethodPost, "/api/orchestrations", nil, fmt.Appendf(nil, `{"orchestrator":"hmac","correlationId":%q,"input":{"operation":"rotate","instanceId":%q}}`, id, "instance-"+id))
		return status
	}
	p.proxy.arm(0, "")
	calm := uuid.NewString()
	if status := start(calm); status != http.StatusAccepted {
		t.Fatal(status)
	}
	p.succeeded(t, calm, "instance-"+calm)
	if got := entries("hmac-" + calm); len(got) != 1 || got[0].Outcome != audit.Done || got[0].Kind != "local" {
		t.Errorf("%+v", got)
	}
	began, unknown := 0, 0
	for at := 1; at <= 8; at++ { // the first requests are the start's own
		for _, m := range []moment{before, after} {
			id, pid := uuid.NewString(), p.host.HandlerPID()
			p.proxy.arm(at, m)
			status := start(id)
			testenv.Until(t, "death", func() bool { now := p.host.HandlerPID(); return now != 0 && now != pid })
			p.proxy.arm(0, "")
			p.up(t)
			got := entries("hmac-" + id)
			if there("hmac-"+id) && len(got) != 1 {
				t.Errorf("killed %s request %d: there is an orchestration, and %d entries", m, at, len(got))
			}
			if status == http.StatusAccepted && len(got) != 1 {
				t.Errorf("killed %s request %d: it was taken, and there are %d entries", m, at, len(got))
			}
			if there("hmac-" + id) {
				began++
			}
			if len(got) == 1 && got[0].Outcome == audit.Unknown {
				unknown++
			}
		}
	}
	t.Logf("%d of 16 began, %d entries do not know what became of it", began, unknown)
	if began == 0 || unknown == 0 {
		t.Error("the handler did not die while it started an orchestration")
	}
}

// up waits until the handler answers again.
func (p *platform) up(t *testing.T) {
	t.Helper()
	testenv.Until(t, "the handler is back", func() bool {
		status, _ := p.ask(t, http.MethodGet, "/api/health/live", nil, nil)
		return status == http.StatusOK
	})
}
