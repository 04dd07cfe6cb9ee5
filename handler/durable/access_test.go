package durable

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

func caller(tenant string, roles ...string) accesstest.Caller {
	return accesstest.Caller{Tenant: tenant, Object: "ann", Name: "ann@example.com", AppRoles: roles}
}

// person returns the platform's header of a user of a tenant.
func person(tenant string, roles ...string) string { return caller(tenant, roles...).Header() }

// Every operation on another tenant's instance is answered as for a missing one, leaves it unchanged, and is recorded
// as refused if it would have been a change.
func TestAnotherTenant(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, id := range []string{"blue's", "red's"} {
		s := orchestrator.Start{ID: id, Orchestrator: "Gate", Input: []byte(`"in"`), TenantID: accesstest.ID(strings.TrimSuffix(id, "'s"))}
		testenv.Must(b.runtime.Start(t.Context(), s))(t)
	}
	b.begin(t, "Gate", "nobody's", `"in"`)
	b.drive(t)
	testenv.OK(t, b.list.Flush(t.Context()))
	red := person("red", "Roundhouse.Operator")
	for _, id := range []string{"blue's", "nobody's"} {
		for _, r := range []struct {
			method, path, body string
			status             int
		}{
			{http.MethodGet, "/instances/" + id, "", http.StatusNotFound},
			{http.MethodGet, "/instances/" + id + "?showHistory=true", "", http.StatusNotFound},
			{http.MethodPost, "/instances/" + id + "/raiseEvent/open", `"x"`, http.StatusNotFound},
			{http.MethodPost, "/instances/" + id + "/terminate", "", http.StatusNotFound},
			{http.MethodPost, "/instances/" + id + "/suspend", "", http.StatusNotFound},
			{http.MethodPost, "/instances/" + id + "/resume", "", http.StatusNotFound},
			{http.MethodPost, "/instances/" + id + "/rewind", "", http.StatusNotFound},
			{http.MethodPost, "/instances/" + id + "/restart", "", http.StatusBadRequest}, // as for a missing instance
			{http.MethodPost, "/instances/" + id + "/restart?restartWithNewInstanceId=false", "", http.StatusBadRequest},
			{http.MethodDelete, "/instances/" + id, "", http.StatusForbidden}, // operators may not purge
			{http.MethodPost, "/orchestrators/Gate/" + id, `"x"`, http.StatusConflict},
		} {
			rec := b.send(t, r.method, base+r.path, r.body, "X-MS-CLIENT-PRINCIPAL", red, "Content-Type", "application/json")
			if rec.Code != r.status || strings.Contains(rec.Body.String(), "closed") {
				t.Errorf("%s %s: %d %s, want %d", r.method, r.path, rec.Code, rec.Body, r.status)
			}
		}
		b.drive(t)
		if s, err := b.runtime.Status(t.Context(), id); err != nil || s.Status != orchestrator.Running {
			t.Errorf("%s is %s, %v", id, s.Status, err)
		}
	}
	var ids []string
	for _, i := range body[[]shown](t, b.send(t, http.MethodGet, base+"/instances", "", "X-MS-CLIENT-PRINCIPAL", red)) {
		ids = append(ids, i.InstanceID)
	}
	testenv.Equal(t, "the list", []string{"red's"}, ids)
	if rec := b.send(t, http.MethodPost, base+"/instances/red's/terminate", "", "X-MS-CLIENT-PRINCIPAL", red); rec.Code != http.StatusAccepted {
		t.Errorf("one's own: %d %s", rec.Code, rec.Body)
	}
	page, err := b.door().Audit.List(t.Context(), audit.Filter{Principal: caller("red").ID()}, audit.MaxLimit, "")
	testenv.OK(t, err)
	outcomes := map[audit.Outcome]int{}
	for _, e := range page.Entries {
		outcomes[e.Outcome]++
		if e.Name != "ann@example.com" || e.Door != "durable" {
			t.Errorf("%+v", e)
		}
	}
	testenv.Equal(t, "the audit log", map[audit.Outcome]int{audit.Refused: 18, audit.Done: 1}, outcomes)
}

// Every change is recorded with its caller and its target: one entry for each request.
func TestChangesAreRecorded(t *testing.T) {
	t.Parallel()
	b := filled(t)
	var routes, tried []string
	permissions := map[string]string{}
	for _, r := range Routes() {
		if r.Permission.Changes() {
			name := r.Method + " " + strings.TrimPrefix(r.Path, base)
			routes, permissions[name] = append(routes, name), string(r.Permission)
		}
	}
	for _, r := range []struct{ route, path, body, action, target, before, reason string }{
		{"POST /orchestrators/:name/:instance", "/orchestrators/Hello/mine", `"you"`, "start Hello", "/mine", "", ""},
		{"POST /instances/:instance/raiseEvent/:event", "/instances/Running/raiseEvent/open", `"you"`, "raise open", "/Running", "Running", ""},
		{"POST /instances/:instance/suspend", "/instances/Running/suspend?reason=lunch", "", "suspend", "/Running", "Running", "lunch"},
		{"POST /instances/:instance/resume", "/instances/Suspended/resume?reason=lunch", "", "resume", "/Suspended", "Suspended", "lunch"},
		{"POST /instances/:instance/terminate", "/instances/Pending/terminate?reason=stuck", "", "terminate", "/Pending", "Pending", "stuck"},
		{"POST /instances/:instance/rewind", "/instances/Failed/rewind", "", "rewind", "/Failed", "Failed", ""},
		{"POST /instances/:instance/restart", "/instances/Terminated/restart?restartWithNewInstanceId=false", "", "restart", "/Terminated", "Terminated", ""},
		{"DELETE /instances/:instance", "/instances/Completed", "", "purge", "/Completed", "Completed", ""},
		{"DELETE /instances", "/instances?createdTimeFrom=2000-01-01T00:00:00Z&runtimeStatus=Canceled", "", "purge", "", "created from", ""},
	} {
		tried = append(tried, r.route)
		method, _, _ := strings.Cut(r.route, " ")
		correlation := fmt.Sprintf("c-%d", len(tried))
		rec := b.send(t, method, base+r.path, r.body, "X-MS-CLIENT-PRINCIPAL", person("home", "Roundhouse.Administrator"),
			"Content-Type", "application/json", "x-correlation-id", correlation)
		page, err := b.door().Audit.List(t.Context(), audit.Filter{Target: "orchestrations" + r.target}, audit.MaxLimit, "")
		entries := slices.DeleteFunc(page.Entries, func(e audit.Entry) bool { return e.CorrelationID != correlation })
		if err != nil || rec.Code >= 300 || len(entries) != 1 {
			t.Errorf("%s: %d %s: %+v, %v", r.route, rec.Code, rec.Body, page.Entries, err)
			continue
		}
		got := entries[0]
		want := audit.Entry{ID: got.ID, At: got.At, EndedAt: got.EndedAt, TenantID: got.TenantID, After: got.After, Before: r.before,
			Principal: caller("home").ID(), Name: "ann@example.com", Kind: "person", Door: "durable", Permission: permissions[r.route],
			Action: r.action, Target: "orchestrations" + r.target, CorrelationID: correlation, Reason: r.reason, Outcome: audit.Done}
		if r.before == "created from" && strings.HasPrefix(got.Before, r.before) {
			want.Before = got.Before
		}
		testenv.Equal(t, r.route, want, got)
	}
	slices.Sort(routes)
	slices.Sort(tried)
	testenv.Equal(t, "what is tried, of what changes something", routes, tried)
}

// A refused caller gets the remedy.
func TestDoorRefuses(t *testing.T) {
	t.Parallel()
	b := filled(t)
	for name, c := range map[string]struct {
		header  string
		status  int
		message string
	}{
		"nobody":      {"", http.StatusUnauthorized, "/api/machine/"},
		"no role":     {person("home"), http.StatusForbidden, "orchestrations.command"},
		"a reader":    {person("home", "Roundhouse.Reader"), http.StatusForbidden, "orchestrations.command"},
		"unreadable":  {"e30x", http.StatusForbidden, "cannot be read"},
		"no identity": {caller("").Header(), http.StatusForbidden, "tid and oid"},
	} {
		// Outside of /api, the host has checked no key.
		rec := b.send(t, http.MethodPost, "/runtime/webhooks/durabletask/instances/Running/terminate", "", "X-MS-CLIENT-PRINCIPAL", c.header)
		if got := body[problem](t, rec); rec.Code != c.status || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: %d %+v", name, rec.Code, got)
		}
	}
}
