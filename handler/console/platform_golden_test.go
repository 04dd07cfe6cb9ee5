package console

import (
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/handler/access"
)

func nodesData(more ...any) map[string]any {
	return map[string]any{"continuationToken": "next page", "items": append([]any{
		map[string]any{"node": "node-b", "host": "worker-2/17", "version": "8f1c2e", "state": "alive", "sinceUtc": "2026-11-26T10:00:00Z", "seenUtc": "2026-11-26T13:59:50Z", "inHand": 3},
		map[string]any{"node": "node-a", "host": "worker-1/17", "version": "7d0b1a", "state": "taken", "sinceUtc": "2026-11-26T08:00:00Z", "seenUtc": "2026-11-26T09:00:00Z", "takenBy": "node-b", "takenAtUtc": "2026-11-26T10:01:00Z"},
	}, more...)}
}

func auditData(more map[string]any) map[string]any {
	d := map[string]any{"id": "1", "atUtc": "2026-11-26T13:00:00Z", "principal": "t/o", "name": "ada@example.com", "kind": "person", "permission": "tasks.act", "action": "complete", "target": "tasks/store-work-1/1-1",
		"door": "https", "outcome": "Done", "before": "Assigned, t/o", "after": "Completed", "reason": "looks right"}
	for name, value := range more {
		d[name] = value
	}
	return d
}

// The pages of the app itself, and of who uses it, are as their golden files have them.
func TestGoldenPlatform(t *testing.T) {
	t.Parallel()
	who := operator()
	who["appRoles"], who["roles"], who["tenantId"] = []string{"Roundhouse.Administrator"}, []string{"administrator"}, "home"
	many := approver()
	many["groupsMissing"], many["scope"] = true, "red"
	evilNode := map[string]any{"node": evil, "host": turning, "version": evil, "state": evil, "takenBy": turning, "sinceUtc": "0001-01-01T00:00:00Z"}
	evilMe := map[string]any{"kind": evil, "id": evil, "name": turning, "scope": evil, "tenantId": evil, "roles": []any{evil}, "appRoles": []any{turning}, "permissions": access.Permissions()}
	evilEntry := map[string]any{"principal": evil, "name": turning, "kind": evil, "permission": evil, "action": evil, "target": evil, "door": evil, "tenantId": turning, "outcome": evil, "before": evil, "after": turning, "reason": evil}
	for name, test := range map[string]struct {
		api    answers
		target string
		status int
	}{
		"me_typical":    {answers{"/api/me": who, "/api/nodes": nodesData()}, mePath, 200},
		"me_empty":      {answers{"/api/me": who, "/api/nodes": list()}, mePath + "?continuationToken=x", 200},
		"me_scoped":     {answers{"/api/me": many}, mePath, 200},
		"me_hostile":    {answers{"/api/me": evilMe, "/api/nodes": nodesData(evilNode)}, mePath, 200},
		"audit_empty":   {answers{"/api/me": who, "/api/audit": list()}, auditPath, 200},
		"audit_typical": {answers{"/api/me": who, "/api/audit": map[string]any{"items": []any{auditData(nil), auditData(map[string]any{"outcome": "Refused", "before": "", "after": "", "permission": ""})}, "continuationToken": "next"}}, auditPath + "?target=tasks%2Fx&continuationToken=x", 200},
		"audit_hostile": {answers{"/api/me": who, "/api/audit": list(auditData(evilEntry))}, auditPath + "?principal=%22%3E%3Cscript%3E", 200},
		"audit_wrong":   {answers{"/api/me": who, "/api/audit": refusal{400, "InvalidParameter", "principal: Use either target or principal."}}, auditPath + "?principal=a&target=b", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, test.api, test.target, test.status)
		})
	}
}

// Each permission says what it is for, and nothing else has a meaning.
func TestPermissionsHaveMeanings(t *testing.T) {
	t.Parallel()
	for _, p := range access.Permissions() {
		if strings.TrimSpace(meanings()[p]) == "" {
			t.Errorf("%s means nothing", p)
		}
	}
	for p := range meanings() {
		if !slices.Contains(access.Permissions(), p) {
			t.Errorf("%s is no permission", p)
		}
	}
}
