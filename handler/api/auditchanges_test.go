package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
)

// changeRequest is a request that changes an existing object.
type changeRequest struct{ path, body, target string }

// changesOfRoutes returns one request for each route that changes something.
func changesOfRoutes(t *testing.T, b *outboxBench) map[string]func(id string) changeRequest {
	t.Helper()
	running := func(word, body string) func(string) changeRequest {
		return func(id string) changeRequest {
			b.begin(t, id, "book")
			return changeRequest{orchestrationPath(id) + word, body, "orchestrations/" + id}
		}
	}
	ended := func(word, body string) func(string) changeRequest {
		return func(id string) changeRequest {
			b.begin(t, id, "broken")
			b.tell(t, id, "/events/decision", "true")
			b.drive(t)
			return changeRequest{orchestrationPath(id) + word, body, "orchestrations/" + id}
		}
	}
	asked := func(word, body string) func(string) changeRequest {
		return func(id string) changeRequest {
			path := b.ask(t, id, question("red"))
			if word == "release" || word == "reassign" {
				b.act(t, path, "claim", "{}", "")
			}
			return changeRequest{path + "/" + word, body, "tasks/" + id + "/1-1"}
		}
	}
	letter := func(word, body string) func(string) changeRequest {
		return func(id string) changeRequest {
			b.buryOne(t, id)
			path := b.letter("hmac", id)
			return changeRequest{path + word, body, "dlq" + strings.TrimPrefix(path, "/api/dlq")}
		}
	}
	message := func(word string) func(string) changeRequest {
		return func(string) changeRequest {
			for n := range 4 { // the dead ones
				path := b.one("acme", 12+n)
				if data[outboxDetail](t, b.get(t, path)).Status == "dead" {
					return changeRequest{path + "/" + word, "{}", "outbox" + strings.TrimPrefix(path, "/api/workflow/outbox")}
				}
			}
			t.Fatal("no message is dead any more")
			return changeRequest{}
		}
	}
	instance := func(word, body string, prepare func(id string) error) func(string) changeRequest {
		return func(id string) changeRequest {
			_, err := b.registry.Create(t.Context(), registry.Instance{InstanceID: id})
			if err == nil && prepare != nil {
				err = prepare(id)
			}
			testenv.OK(t, err)
			return changeRequest{"/api/registry/" + id + word, body, "registry/" + id}
		}
	}
	held := func(job string) func(id string) error {
		return func(id string) error {
			_, err := b.registry.Acquire(t.Context(), id, job, time.Hour)
			return err
		}
	}
	operation := func(word string) func(string) changeRequest {
		return func(string) changeRequest {
			op, _ := b.replayAll(t, `{"status":"processed","tenant":"nobody"}`)
			return changeRequest{"/api/operations/" + op.ID + word, "{}", "operations/" + op.ID}
		}
	}
	poller := func(word, body string) func(string) changeRequest {
		return func(string) changeRequest {
			b.putState(t, "parts", stateAt("parts", 7))
			return changeRequest{"/api/pollers/parts/" + word, body, "pollers/parts"}
		}
	}
	return map[string]func(id string) changeRequest{
		"POST /api/pollers/:poller/reset-to-beginning":  poller("reset-to-beginning", ""),
		"POST /api/pollers/:poller/reset-to-checkpoint": poller("reset-to-checkpoint", `{"checkpoint":{"cursor":{"kind":"integer","value":"5"}}}`),
		"POST /api/pollers/:poller/reset-to-cursor":     poller("reset-to-cursor", `{"value":"5"}`),
		"POST /api/pollers/:poller/clone-checkpoint":    poller("clone-checkpoint", `{"to":"copy"}`),
		"POST /api/pollers/:poller/accept-fingerprint":  poller("accept-fingerprint", "{}"),
		"POST /api/pollers/:poller/break-lease":         poller("break-lease", "{}"),
		"POST /api/pollers/:poller/retire":              poller("retire", "{}"),
		"POST /api/registry": func(id string) changeRequest {
			return changeRequest{"/api/registry", `{"instanceId":"` + id + `"}`, "registry/" + id}
		},
		"PATCH /api/registry/:instance":       instance("", `{"ring":"early"}`, nil),
		"DELETE /api/registry/:instance":      instance("", "", nil),
		"POST /api/registry/:instance/drain":  instance("/drain", "{}", nil),
		"POST /api/registry/:instance/resume": instance("/resume", "{}", held("drain/somebody")),
		"POST /api/registry/:instance/unlock": instance("/unlock", "{}", held("health-gone/run-1")),
		"POST /api/dlq/retry": func(string) changeRequest {
			return changeRequest{"/api/dlq/retry", `{"engine":"hmac"}`, "dead-letter-bulk"}
		},
		"POST /api/dlq/expire": func(string) changeRequest {
			return changeRequest{"/api/dlq/expire", `{"olderThanDays":1}`, "dead-letter-bulk"}
		},
		"POST /api/workflow/outbox/replay": func(string) changeRequest {
			return changeRequest{"/api/workflow/outbox/replay", `{"status":"dead"}`, "outbox-bulk"}
		},
		"POST /api/orchestrations/purge": func(string) changeRequest {
			return changeRequest{"/api/orchestrations/purge", `{"olderThanDays":1}`, "orchestration-bulk"}
		},
		"PATCH /api/dlq/:engine/:rowKey":                 letter("", `{"status":"Resolved","resolutionNotes":"seen"}`),
		"POST /api/dlq/:engine/:rowKey/retry":            letter("/retry", "{}"),
		"POST /api/dlq/:engine/:rowKey/notes":            letter("/notes", `{"text":"seen"}`),
		"POST /api/dlq/:engine/:rowKey/claim":            letter("/claim", "{}"),
		"POST /api/dlq/:engine/:rowKey/assign":           letter("/assign", `{"assignee":"a/b"}`),
		"POST /api/dlq/:engine/:rowKey/release":          letter("/release", "{}"),
		"POST /api/dlq/:engine/:rowKey/retry-edited":     letter("/retry-edited", `{"message":"{}"}`),
		"POST /api/workflow/outbox/:tenant/:id/retry":    message("retry"),
		"POST /api/workflow/outbox/:tenant/:id/skip":     message("skip"),
		"POST /api/workflow/outbox/:tenant/:id/replay":   message("replay"),
		"POST /api/tasks/:orchestration/:task/claim":     asked("claim", "{}"),
		"POST /api/tasks/:orchestration/:task/release":   asked("release", "{}"),
		"POST /api/tasks/:orchestration/:task/assign":    asked("assign", `{"assignee":"bob"}`),
		"POST /api/tasks/:orchestration/:task/reassign":  asked("reassign", `{"assignee":"bob"}`),
		"POST /api/tasks/:orchestration/:task/complete":  asked("complete", `{"output":{"approved":true}}`),
		"DELETE /api/orchestrations/:orchestration":      ended("", ""),
		"POST /api/orchestrations/:orchestration/rewind": ended("/rewind", "{}"), "POST /api/orchestrations/:orchestration/restart": ended("/restart", "{}"),
		"POST /api/orchestrations/:orchestration/suspend": running("/suspend", "{}"), "POST /api/orchestrations/:orchestration/resume": running("/resume", "{}"),
		"POST /api/orchestrations/:orchestration/cancel": running("/cancel", "{}"), "POST /api/orchestrations/:orchestration/terminate": running("/terminate", `{"reason":"stuck"}`),
		"POST /api/orchestrations/:orchestration/events/:event": running("/events/decision", "true"),
		"POST /api/orchestrations": func(id string) changeRequest {
			return changeRequest{"/api/orchestrations", `{"orchestrator":"approval","id":"` + id + `","input":{"item":"book"}}`, "orchestrations/" + id}
		},
		"POST /api/acknowledgements": func(string) changeRequest {
			return changeRequest{"/api/acknowledgements", acknowledges, "acknowledgements/hmac/i/1/gateway"}
		},
		"POST /api/schedules/:engine/run": func(string) changeRequest {
			return changeRequest{"/api/schedules/hmac/run", `{"item":"payments"}`, "schedules/hmac/payments"}
		},
		"POST /api/operations/:operation/cancel": operation("/cancel"), "POST /api/operations/:operation/pause": operation("/pause"), "POST /api/operations/:operation/resume": operation("/resume"),
	}
}

// Every route that changes something records its caller first: when that fails, nothing changes. The outcome is
// recorded, too.
func TestChangesAreRecorded(t *testing.T) {
	t.Parallel()
	b := newFilledOutbox(t)
	made := changesOfRoutes(t, b)
	keeper := caller("Ada", "home", "keeper")
	for _, r := range Routes() {
		if !r.Permission.Changes() {
			continue
		}
		name := r.Method + " " + r.Path
		prepare, ok := made[name]
		if !ok {
			t.Errorf("%s changes something, and is not tried", name)
			continue
		}
		id := strings.NewReplacer("/", "-", ":", "", " ", "-").Replace(name)
		c := prepare(id)
		recorded, early, refusing := 0, []faults.Call{}, true
		b.refuse = func(call faults.Call) bool {
			switch mutates := slices.Contains([]string{"Apply", "Send", "Put", "Delete"}, call.Operation); {
			case call.Target == audit.DefaultTable && mutates:
				recorded++
				return refusing
			case mutates && recorded == 0, mutates && refusing:
				early = append(early, call)
			}
			return false
		}
		headers := []string{"X-MS-CLIENT-PRINCIPAL", keeper, "x-correlation-id", "corr-" + id}
		rec := b.send(t, r.Method, c.path, c.body, headers...)
		if rec.Code != http.StatusServiceUnavailable || code(t, rec) != codeNotRecorded || len(early) > 0 {
			t.Errorf("%s, when it cannot be recorded: %d %s; it changes %v", name, rec.Code, rec.Body, early)
		}
		recorded, refusing = 0, false
		rec = b.send(t, r.Method, c.path, c.body, headers...)
		if rec.Code >= 300 || len(early) > 0 || recorded != 2 {
			t.Errorf("%s: %d %s; it changes %v before, and records %d times", name, rec.Code, rec.Body, early, recorded)
		}
		b.refuse = nil
		page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Target: c.target}, 10, "")
		if err != nil || len(page.Entries) == 0 {
			t.Errorf("%s: %d entries of %s, %v", name, len(page.Entries), c.target, err)
			continue
		}
		e := page.Entries[0]
		want := audit.Entry{Principal: idOf("Ada", "home"), Name: "Ada", Kind: "person", Permission: string(r.Permission), Door: "api", CorrelationID: "corr-" + id, Outcome: audit.Done}
		got := audit.Entry{Principal: e.Principal, Name: e.Name, Kind: e.Kind, Permission: e.Permission, Door: e.Door, CorrelationID: e.CorrelationID, Outcome: e.Outcome}
		if diff := cmp.Diff(want, got); diff != "" || e.Action == "" || e.EndedAt.Before(e.At) {
			t.Errorf("%s (-want +got):\n%s\n%+v", name, diff, e)
		}
		b.drive(t)
	}
}

// A refused change is recorded, for any reason of the refusal; a failed one is recorded as such; and reads are not
// recorded.
func TestRefusalsAreRecorded(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.begin(t, "a", "book")
	task := b.ask(t, "t", question("red"))
	for name, c := range map[string]struct {
		method, path, body, as string
		status                 int
		want                   audit.Outcome // "" for no entry
	}{
		"no permission":    {http.MethodPost, "/api/orchestrations/a/terminate", "{}", caller("rita", "home", "Roundhouse.Reader"), http.StatusForbidden, audit.Refused},
		"another tenant's": {http.MethodPost, "/api/orchestrations/a/terminate", "{}", caller("tom", "red", "Roundhouse.Operator"), http.StatusNotFound, audit.Refused},
		"others' task":     {http.MethodPost, task + "/claim", "{}", caller("eve", "red"), http.StatusForbidden, audit.Failed},
		"by force":         {http.MethodDelete, "/api/orchestrations/a?force=true&reason=x", "", caller("olga", "home", "Roundhouse.Operator"), http.StatusForbidden, audit.Refused},
		"it fails":         {http.MethodDelete, "/api/orchestrations/a", "", caller("kim", "home", "keeper"), http.StatusConflict, audit.Failed},
		"it is not there":  {http.MethodDelete, "/api/orchestrations/zz", "", caller("kay", "home", "keeper"), http.StatusNotFound, ""},
		"a bad request":    {http.MethodPost, "/api/orchestrations/a/terminate", `{"why":1}`, caller("ken", "home", "keeper"), http.StatusBadRequest, ""},
		"it is read":       {http.MethodGet, "/api/orchestrations/a", "", caller("tim", "red", "Roundhouse.Operator"), http.StatusNotFound, ""},
	} {
		rec := b.send(t, c.method, c.path, c.body, "X-MS-CLIENT-PRINCIPAL", c.as)
		testenv.Equal(t, fmt.Sprintf("%s: %s", name, rec.Body), c.status, rec.Code)
		who := data[meItem](t, b.get(t, "/api/me", "X-MS-CLIENT-PRINCIPAL", c.as)).ID
		page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Principal: who}, 10, "")
		if err != nil || len(page.Entries) > 1 || (len(page.Entries) == 0) != (c.want == "") {
			t.Errorf("%s: %+v, %v", name, page.Entries, err)
			continue
		}
		if c.want != "" && (page.Entries[0].Outcome != c.want || page.Entries[0].After == "") {
			t.Errorf("%s: %+v", name, page.Entries[0])
		}
	}
	testenv.Equal(t, "its status", orchestrator.Running, b.shown(t, "a").Status)
}

// buryOne adds a dead letter that can be retried.
func (b *outboxBench) buryOne(t *testing.T, id string) {
	t.Helper()
	b.bury(t, engine.DeadLetter{MessageID: id, LastFailureAtUtc: b.now().Add(-time.Hour), CorrelationID: "c-" + id})
	testenv.OK(t, b.queues.CreateQueue(t.Context(), rotations))
}
