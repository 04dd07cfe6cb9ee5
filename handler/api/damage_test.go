package api

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// hurt deletes a row of an orchestration.
func (b *outboxBench) hurt(t *testing.T, id, row string) {
	t.Helper()
	testenv.OK(t, b.tables.Apply(t.Context(), "orchestrations", tables.Delete(tables.Key{Partition: id, Row: row}, "")))
}

// Every request for a damaged orchestration reports the damage and the remedy; lists continue. A forced purge frees
// its id.
func TestDamagedOrchestration(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]string{"a round": "r-00000001-00000001", "the status": "status"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newOutboxBench(t)
			b.begin(t, "a", "book")
			b.begin(t, "b", "book")
			b.hurt(t, "a", row)
			path := orchestrationPath("a")
			for _, r := range []struct{ method, path, body string }{
				{http.MethodGet, path, ""}, {http.MethodDelete, path, ""}, {http.MethodPost, path + "/terminate", "{}"}, {http.MethodPost, path + "/cancel", "{}"},
				{http.MethodPost, path + "/suspend", "{}"}, {http.MethodPost, path + "/resume", "{}"}, {http.MethodPost, path + "/restart", "{}"},
				{http.MethodPost, path + "/rewind", "{}"}, {http.MethodPost, orchestrationsPath, `{"orchestrator":"approval","id":"a","reuse":"any"}`},
			} {
				rec := b.send(t, r.method, r.path, r.body)
				if rec.Code != http.StatusInternalServerError || code(t, rec) != codeDamaged || !strings.Contains(rec.Body.String(), "force=true") {
					t.Errorf("%s %s: %d %s", r.method, r.path, rec.Code, rec.Body)
				}
			}
			testenv.OK(t, b.list.Flush(t.Context()))
			if rec := b.get(t, orchestrationsPath); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"id":"b"`) {
				t.Errorf("list: %d %s", rec.Code, rec.Body)
			}
			if rec := b.send(t, http.MethodDelete, path+"?force=true&reason=no+backup", ""); rec.Code != http.StatusOK {
				t.Fatalf("%d %s", rec.Code, rec.Body)
			}
			if log := b.log.String(); !strings.Contains(log, `msg="an orchestration is purged by force" orchestrationId=a by=function-key reason="no backup"`) {
				t.Error(log)
			}
			b.begin(t, "a", "book")
			testenv.Equal(t, "the other one", orchestrator.Running, b.shown(t, "b").Status)
		})
	}
}

// A forced purge requires a reason, an administrator, and an orchestration that is damaged or has ended.
func TestForcedPurgeIsRefused(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.begin(t, "a", "book")
	path := orchestrationPath("a")
	for _, tt := range []struct {
		query, as string
		status    int
		code      string
	}{
		{"?force=true", "", http.StatusBadRequest, codeInvalidParameter},
		{"?force=true&reason=+", "", http.StatusBadRequest, codeInvalidParameter},
		{"?force=yes&reason=x", "", http.StatusBadRequest, codeInvalidParameter},
		{"?reason=x", "", http.StatusBadRequest, codeInvalidParameter},
		{"?force=true&reason=" + strings.Repeat("x", maxOperatorReason+1), "", http.StatusBadRequest, codeInvalidParameter},
		{"?forced=true", "", http.StatusBadRequest, codeInvalidParameter},
		{"?force=true&reason=x", caller("ann", "home", "approver"), http.StatusForbidden, codeForbidden},
		{"?force=true&reason=x", "", http.StatusConflict, codeActive},
		{"?force=true&reason=x", caller("kim", "home", "keeper"), http.StatusConflict, codeActive},
	} {
		expect(t, b.person(t, tt.as, http.MethodDelete, path+tt.query, ""), tt.status, tt.code, "%.40s", tt.query)
	}
	testenv.Equal(t, "its status", orchestrator.Running, b.shown(t, "a").Status)
	expect(t, b.send(t, http.MethodDelete, orchestrationPath("nobody")+"?force=true&reason=x", ""), http.StatusNotFound, "", "")
}

// Impossible names are 404, at any length.
func TestNamesThatNothingHas(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for _, id := range []string{strings.Repeat("/", 400), strings.Repeat("x", 1024), strings.Repeat("\u00e9", 200) + "\xff", strings.Repeat("#", 171)} {
		id = url.PathEscape(id)
		for _, r := range []struct{ method, path string }{
			{http.MethodGet, "/api/tasks/" + id + "/1-1"}, {http.MethodGet, "/api/tasks/a/" + id}, {http.MethodPost, "/api/tasks/" + id + "/1-1/claim"},
			{http.MethodDelete, "/api/orchestrations/" + id}, {http.MethodDelete, "/api/orchestrations/" + id + "?force=true&reason=x"},
			{http.MethodGet, "/api/orchestrations/" + id}, {http.MethodPost, "/api/orchestrations/" + id + "/terminate"},
			{http.MethodPost, "/api/orchestrations/" + id + "/restart"}, {http.MethodGet, "/api/orchestrations/" + id + "/rounds"},
		} {
			expect(t, b.send(t, r.method, r.path, "{}"), http.StatusNotFound, "", "%s %.40s...", r.method, r.path)
		}
	}
}
