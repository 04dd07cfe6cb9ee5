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

func scheduleData(more map[string]any) map[string]any {
	d := map[string]any{"engine": "store", "schedule": "nightly", "item": "blue", "cron": "0 0 3 * * *", "source": "engine", "spread": "1h0m0s", "nextAtUtc": "2026-11-27T03:00:00Z", "dueAtUtc": "2026-11-26T03:00:00Z",
		"sentAtUtc": "2026-11-26T03:00:02Z", "messages": 2, "correlationId": "work-1", "result": "Succeeded"}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func instanceData(more map[string]any) map[string]any {
	d := map[string]any{"instanceId": "blue-1", "tenantId": "blue", "ring": "canary", "version": "2.1", "registryVersion": 9007199254740993, "lock": map[string]any{"held": false},
		"document": map[string]any{"instanceId": "blue-1", "version": "2.1"}}
	for name, value := range more {
		d[name] = value
	}
	return d
}

func drainedInstance() map[string]any {
	return instanceData(map[string]any{"own": true, "tablesInUse": map[string]any{"history": "history"}, "lock": map[string]any{"held": true, "jobId": "drain/t/o", "drainedBy": "t/o", "untilUtc": "2026-11-26T15:00:00Z"}})
}

// platformPages are the pages of this file.
func platformPages() map[string]shown {
	evilSchedule := scheduleData(map[string]any{"engine": "a/../b", "schedule": evil, "item": turning, "cron": evil, "source": evil, "spread": evil, "correlationId": evil, "result": evil, "error": turning, "failures": 3})
	evilInstance := instanceData(map[string]any{"instanceId": "a/../b?" + evil, "tenantId": turning, "ring": evil, "version": turning, "damaged": evil, "lock": map[string]any{"held": true, "jobId": evil, "untilUtc": "9999-01-01T00:00:00Z"},
		"document": map[string]any{"n": turning, "text": evil}})
	missed := scheduleData(map[string]any{"item": "", "schedule": "", "nextAtUtc": "2026-11-26T13:57:00Z", "error": "the queue answered 503", "failures": 2, "retryAtUtc": "2026-11-26T14:01:00Z", "result": "DeadLetter"})
	never := scheduleData(map[string]any{"schedule": "off", "nextAtUtc": nil, "sentAtUtc": nil, "messages": 0, "correlationId": "", "result": ""})
	api := answers{"/api/me": operator(), "/api/schedules": map[string]any{"items": []any{scheduleData(nil), missed, never}, "continuationToken": "next page"},
		"/api/registry": map[string]any{"items": []any{instanceData(nil), drainedInstance()}, "continuationToken": "next page"}, "/api/registry/blue-1": instanceData(nil), "/api/registry/own": drainedInstance()}
	none := answers{"/api/me": operator(), "/api/schedules": list(), "/api/registry": list()}
	bad := answers{"/api/me": operator(), "/api/schedules": list(evilSchedule), "/api/registry": list(evilInstance), "/api/registry/a/../b?" + evil: evilInstance}
	readers := api.with(answers{"/api/me": reader()})
	evilLink := instanceItem{InstanceID: Text("a/../b?" + evil)}.Link()
	return map[string]shown{
		"schedules_empty":   at(none, schedulesPath, 200),
		"schedules_typical": at(api, schedulesPath+"?engine=store&done=run&correlationId=work-1&continuationToken=x", 200),
		"schedules_reader":  at(readers, schedulesPath, 200),
		"schedules_hostile": at(bad, schedulesPath+"?item=%22%3E%3Cscript%3E", 200),
		"schedules_wrong":   at(api.with(answers{"/api/schedules": refusal{400, "InvalidParameter", "engine: Use one of store."}}), schedulesPath+"?engine=x", 400),
		"run_typical":       at(api, scheduleItem{Engine: "store", Schedule: "nightly", Item: "blue"}.Run(), 200),
		"run_reader":        at(readers, scheduleItem{Engine: "store"}.Run(), 200),
		"run_hostile":       at(bad, scheduleItem{Engine: "a/../b", Schedule: evil, Item: turning}.Run(), 200),
		"run_none":          at(api, scheduleItem{Engine: "store", Schedule: "weekly"}.Run(), 404),
		"registry_empty":    at(none, registryPath, 200),
		"registry_typical":  at(api, registryPath+"?locked=true&continuationToken=x", 200),
		"registry_hostile":  at(bad, registryPath+"?ring=%22%3E%3Cscript%3E", 200),
		"registry_wrong":    at(api.with(answers{"/api/registry": refusal{400, "InvalidParameter", "locked: Use one of true, false."}}), registryPath+"?locked=x", 400),
		"instance_typical":  at(api, registryPath+"/blue-1?done=resumed", 200),
		"instance_drained":  at(api, registryPath+"/own", 200),
		"instance_reader":   at(readers, registryPath+"/own", 200),
		"instance_hostile":  at(bad, evilLink, 200),
		"drain_typical":     at(api, registryPath+"/blue-1/drain", 200),
		"drain_reader":      at(readers, registryPath+"/blue-1/drain", 200),
		"drain_hostile":     at(bad, evilLink+"/drain", 200),
		"resume_typical":    at(api, registryPath+"/own/resume", 200),
		"resume_hostile":    at(bad, evilLink+"/resume", 200),
	}
}

// ownPages are the pages of this file.
func ownPages() map[string]shown {
	who := operator()
	who["appRoles"], who["roles"], who["tenantId"] = []string{"Roundhouse.Administrator"}, []string{"administrator"}, "home"
	many := approver()
	many["groupsMissing"], many["scope"] = true, "red"
	evilNode := map[string]any{"node": evil, "host": turning, "version": evil, "state": evil, "takenBy": turning, "sinceUtc": "0001-01-01T00:00:00Z"}
	evilMe := map[string]any{"kind": evil, "id": evil, "name": turning, "scope": evil, "tenantId": evil, "roles": []any{evil}, "appRoles": []any{turning}, "permissions": access.Permissions()}
	evilEntry := map[string]any{"principal": evil, "name": turning, "kind": evil, "permission": evil, "action": evil, "target": evil, "door": evil, "tenantId": turning, "outcome": evil, "before": evil, "after": turning, "reason": evil}
	return map[string]shown{
		"me_typical":    at(answers{"/api/me": who, "/api/nodes": nodesData()}, mePath, 200),
		"me_empty":      at(answers{"/api/me": who, "/api/nodes": list()}, mePath+"?continuationToken=x", 200),
		"me_scoped":     at(answers{"/api/me": many}, mePath, 200),
		"me_hostile":    at(answers{"/api/me": evilMe, "/api/nodes": nodesData(evilNode)}, mePath, 200),
		"audit_empty":   at(answers{"/api/me": who, "/api/audit": list()}, auditPath, 200),
		"audit_typical": at(answers{"/api/me": who, "/api/audit": map[string]any{"items": []any{auditData(nil), auditData(map[string]any{"outcome": "Refused", "before": "", "after": "", "permission": ""})}, "continuationToken": "next"}}, auditPath+"?target=tasks%2Fx&continuationToken=x", 200),
		"audit_hostile": at(answers{"/api/me": who, "/api/audit": list(auditData(evilEntry))}, auditPath+"?principal=%22%3E%3Cscript%3E", 200),
		"audit_wrong":   at(answers{"/api/me": who, "/api/audit": refusal{400, "InvalidParameter", "principal: Use either target or principal."}}, auditPath+"?principal=a&target=b", 400),
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

func pollerData(more map[string]any) map[string]any {
	d := map[string]any{"name": "orders", "condition": "idle", "defined": true, "place": `2026-11-26T13:59:00Z {"id":9007199254740993}`, "seenAtUtc": "2026-11-26T13:59:50Z",
		"source":    map[string]any{"dialect": "postgres", "sourceId": "shop", "object": "public.orders", "cursor": "updated_at", "keys": []any{"id"}, "bound": "settle"},
		"lastBatch": map[string]any{"id": "batch_1", "rows": 7, "atUtc": "2026-11-26T13:59:10Z"}, "lease": map[string]any{"live": false, "token": 9007199254740993},
		"process":    map[string]any{"ticks": 12, "failures": 2, "rows": 70, "quarantined": 1, "batchSize": 100, "lagSeconds": 90.5, "lastSuccessAtUtc": "2026-11-26T13:59:10Z", "heldBack": ""},
		"quarantine": map[string]any{"rows": 70, "quarantined": 1},
		"settings": map[string]any{"schedule": "*/10 * * * * *", "function": "poller-orders-timer", "state": "blob", "connection": map[string]any{"setting": "ORDERS_DSN", "secret": ""},
			"definition": map[string]any{"dialect": "postgres", "object": "public.orders"}, "engine": map[string]any{"engine": "update", "instanceColumn": "instance_id"}, "leaseTtl": "2m0s", "quarantines": true},
		"document": map[string]any{"version": 1, "poller_name": "orders"}}
	for name, value := range more {
		d[name] = value
	}
	return d
}

// failingPoller is one whose database is away, and stoppedPoller one whose handler takes nothing, on a node that works on it.
func failingPoller() map[string]any {
	const away = "fetch postgres public.orders: the database cannot be reached: check host, port and network"
	return pollerData(map[string]any{"condition": "failing", "problem": away, "failure": map[string]any{"of": "tick", "error": away, "ticks": 144, "firstAtUtc": "2026-11-26T13:00:00Z", "lastAtUtc": "2026-11-26T13:59:50Z"}})
}

func stoppedPoller() map[string]any {
	return pollerData(map[string]any{"name": "parts", "condition": "stopped", "problem": "the engine is away", "lease": map[string]any{"live": true, "owner": "node-a/1f", "token": 42, "untilUtc": "2026-11-26T14:01:00Z"},
		"failure":  map[string]any{"of": "batch", "error": "the engine is away", "attempts": 6, "rows": 1, "stopped": true, "firstAtUtc": "2026-11-26T13:00:00Z", "lastAtUtc": "2026-11-26T13:59:50Z", "nextAtUtc": "2026-11-26T14:10:00Z"},
		"backfill": map[string]any{"end": "99", "done": false}})
}

// pollerPages are the pages of pollers, and of each change of one.
func pollerPages() map[string]shown {
	fresh := map[string]any{"name": "fresh", "condition": "new", "defined": true, "place": "the beginning", "lease": map[string]any{"live": false, "token": 0}}
	damaged := map[string]any{"name": "damaged", "condition": "damaged", "problem": "state document damaged", "defined": false, "place": "the beginning", "lease": map[string]any{"live": false, "token": 0}}
	const name = "a/../b?" + evil
	hostile := pollerData(map[string]any{"name": name, "condition": evil, "problem": evil + turning, "place": turning, "lease": map[string]any{"live": true, "owner": evil, "token": -1, "untilUtc": "9999-01-01T00:00:00Z"},
		"source": map[string]any{"dialect": evil, "sourceId": turning, "object": evil, "cursor": evil, "keys": []any{evil, turning}, "bound": evil}, "lastBatch": map[string]any{"id": evil, "rows": -1, "atUtc": "0001-01-01T00:00:00Z"},
		"failure": map[string]any{"of": evil, "error": evil, "ticks": 3, "firstAtUtc": "2026-11-26T13:00:00Z", "lastAtUtc": "2026-11-26T13:00:00Z"}, "process": map[string]any{"heldBack": turning, "lagSeconds": -1e300},
		"settings": map[string]any{"schedule": evil, "function": evil, "state": evil, "connection": map[string]any{"setting": evil, "secret": turning}, "definition": map[string]any{"query": evil}, "outbox": map[string]any{"eventType": evil, "tenantId": turning, "tenantColumn": evil, "ordered": true}},
		"backfill": map[string]any{"end": evil}, "document": map[string]any{"n": huge, "text": turning}})
	api := answers{"/api/me": operator(), "/api/pollers": map[string]any{"items": []any{damaged, fresh, failingPoller(), stoppedPoller()}, "continuationToken": "next page"}, "/api/pollers/orders": pollerData(nil),
		"/api/pollers/failing": failingPoller(), "/api/pollers/parts": stoppedPoller(), "/api/pollers/fresh": fresh, "/api/pollers/damaged": damaged,
		"/api/pollers/orders/lag":  map[string]any{"place": "7", "end": "9", "caughtUp": false, "behindSeconds": 1798, "heldBack": "a transaction is open since 13:50"},
		"/api/pollers/failing/lag": refusal{503, "SourceUnavailable", "The database cannot be reached: check host, port and network."},
		"/api/pollers/" + name:     hostile, "/api/pollers/" + name + "/lag": map[string]any{"place": evil, "end": turning, "heldBack": evil}}
	none := answers{"/api/me": operator(), "/api/pollers": list()}
	readers := api.with(answers{"/api/me": reader()})
	evilLink := pollerItem{Name: name}.Link()
	pages := map[string]shown{
		"pollers_empty":                  at(none, pollersPath, 200),
		"pollers_typical":                at(api, pollersPath+"?continuationToken=x", 200),
		"pollers_hostile":                at(api.with(answers{"/api/pollers": list(hostile)}), pollersPath, 200),
		"pollers_wrong":                  at(api.with(answers{"/api/pollers": refusal{400, "InvalidContinuationToken", "The continuation token does not belong to this query."}}), pollersPath+"?continuationToken=y", 400),
		"poller_typical":                 at(api, pollersPath+"/orders?lag=now&done=reset-to-cursor", 200),
		"poller_failing":                 at(api, pollersPath+"/failing?lag=now", 200),
		"poller_stopped":                 at(api, pollersPath+"/parts", 200),
		"poller_empty":                   at(api, pollersPath+"/fresh", 200),
		"poller_damaged":                 at(api, pollersPath+"/damaged", 200),
		"poller_reader":                  at(readers, pollersPath+"/orders", 200),
		"poller_hostile":                 at(api, evilLink+"?lag=now", 200),
		"poller_none":                    at(api, pollersPath+"/nobody", 404),
		"poller_retire_live":             at(api, pollersPath+"/parts/retire", 200),
		"poller_retire_refused":          at(api, pollersPath+"/fresh/retire", 200),
		"poller_retire_reader":           at(readers, pollersPath+"/orders/retire", 200),
		"poller_reset-to-cursor_hostile": at(api, evilLink+"/reset-to-cursor", 200),
	}
	for _, a := range pollerActs() {
		pages["poller_"+a.name+"_typical"] = at(api, pollersPath+"/orders/"+a.name, 200)
	}
	return pages
}
