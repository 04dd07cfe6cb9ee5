package console

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
