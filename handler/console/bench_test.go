package console_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

const (
	letters     = console.Root + "/dead-letters"
	runs        = console.Root + "/orchestrations"
	taskList    = console.Root + "/tasks"
	pollerList  = console.Root + "/pollers"
	openHistory = console.Root + "/history"
	purging     = console.Root + "/purge"
	startKeep   = console.Root + "/start/keep"
	work1       = taskList + "/update-work-1/1-1"
	localKey    = "abcdefghijklmnopqrstuvwxyz"

	approvalForm = `{"type": "object", "required": ["approved"], "additionalProperties": false, "properties": {
		"approved": {"type": "boolean", "title": "Start the update"}, "days": {"type": "integer", "minimum": 1}, "why": {"type": "string"}}}`
	keepSchema = `{"type": "object", "properties": {"days": {"type": "integer", "title": "Days"}, "why": {"type": "string", "maxLength": 40}}}`
)

// bench is an app with engines.
type bench struct {
	*handlertest.Host
	mended *atomic.Bool
}

// newBench starts an app with engines by their names: "store" keeps a number, and fails until it is repaired; "keep"
// keeps data that its schema allows; "ask" waits for the event "decision"; "update" asks approvers. Without names it
// has "store".
func newBench(t *testing.T, settings map[string]string, engines ...string) bench {
	t.Helper()
	b := bench{mended: new(atomic.Bool)}
	store := orchestrator.NewActivity("store", func(_ context.Context, days int) (int, error) {
		if !b.mended.Load() {
			return 0, errors.New("the vault answered 503")
		}
		return days, nil
	})
	as := func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }
	keep, note, answered := orchestrator.NewActivity("keep", as), orchestrator.NewActivity("note", as), orchestrator.NewActivity("answer", as)
	all := map[string]engine.Definition{
		"store": {Orchestrator: engine.Orchestrate("store", func(ctx *orchestrator.Context, r engine.Request[int]) (int, error) {
			return store.Call(ctx, r.Input).Await()
		}), Operations: []orchestrator.AnyActivity{store}},
		"keep": {Orchestrator: engine.Orchestrate("keep", func(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (json.RawMessage, error) {
			return keep.Call(ctx, r.Input).Await()
		}), Operations: []orchestrator.AnyActivity{keep}, InputSchema: json.RawMessage(keepSchema)},
		"ask": {Orchestrator: engine.Orchestrate("ask", func(ctx *orchestrator.Context, r engine.Request[json.RawMessage]) (json.RawMessage, error) {
			if _, err := note.Call(ctx, r.Input).Await(); err != nil {
				return nil, err
			}
			return orchestrator.Event[json.RawMessage](ctx, "decision").Await()
		}), Operations: []orchestrator.AnyActivity{note}},
		"update": {Orchestrator: engine.Orchestrate("update", func(ctx *orchestrator.Context, r engine.Request[string]) (json.RawMessage, error) {
			answer, err := orchestrator.AskPerson[json.RawMessage](ctx, orchestrator.HumanTask{Name: "approve update", Roles: []string{"approver"}, TenantID: r.TenantID,
				Payload: map[string]string{"update": r.Input}, Form: json.RawMessage(approvalForm), Due: time.Hour}).Await()
			if err != nil {
				return nil, err
			}
			return answered.Call(ctx, answer.Output).Await()
		}), Operations: []orchestrator.AnyActivity{answered}, Schedules: []engine.Schedule{{Name: "nightly", Cron: "0 0 3 * * *"}}},
	}
	if engines == nil {
		engines = []string{"store"}
	}
	var definitions []engine.Definition
	for _, name := range engines {
		d := all[name]
		d.Name, d.Queue = name, name+"-queue"
		definitions = append(definitions, d)
	}
	b.Host = handlertest.New(t, handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) { return definitions, nil }}, settings)
	return b
}

// newWaiting has a waiting run of the engine "ask", and newAsking a task of the engine "update".
func newWaiting(t *testing.T, correlationID, tenant string) bench {
	t.Helper()
	b := newBench(t, inAzure(), "ask")
	b.begin("ask", correlationID, tenant, "9007199254740993")
	return b
}

func newAsking(t *testing.T, settings map[string]string) bench {
	t.Helper()
	b := newBench(t, settings, "update")
	b.begin("update", "work-1", "", `"the plan"`)
	return b
}

// begin sends a message to an engine, and delivers the resulting messages.
func (b bench) begin(engine, correlationID, tenant, input string) {
	id, _ := json.Marshal(correlationID)
	b.Send(engine+"-queue", fmt.Sprintf(`{"correlationId": %s, "tenantId": %q, "input": %s}`, id, tenant, input))
	b.Deliver()
}

// polled adds two pollers to settings: "orders", of a table with the rows 1 to 3, and "lost", whose connection string
// is not set.
func polled(t *testing.T, settings map[string]string) map[string]string {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1), (2), (3)`); err != nil {
		t.Fatal(err)
	}
	const definition = `%q: {"connection": {"setting": %q}, "source": {"dialect": "sqlite", "sourceId": "shop", "table": "orders", "cursor": "id", "keys": ["id"]}, "deliver": {"engine": {"engine": "keep"}}}`
	settings["ORDERS_DSN"] = dsn
	settings["ROUNDHOUSE_POLLERS"] = "{" + fmt.Sprintf(definition, "orders", "ORDERS_DSN") + "," + fmt.Sprintf(definition, "lost", "LOST_DSN") + "}"
	return settings
}

// bury adds a dead letter, and returns the address of its page; buryMessage and buryAt add one with a message, and at a
// time.
func (b bench) bury(t *testing.T, id, tenant, failure string) string {
	t.Helper()
	return b.buryAt(t, time.Now().Add(-time.Hour), id, tenant, failure, `{"correlationId": "`+id+`", "input": 7}`)
}

func (b bench) buryAt(t *testing.T, at time.Time, id, tenant, failure, message string) string {
	t.Helper()
	at = at.UTC().Truncate(time.Second)
	d := engine.DeadLetter{Engine: "store", MessageID: id, OriginalQueue: "store-queue", OriginalMessage: []byte(message), ErrorMessage: failure, DequeueCount: 5,
		CorrelationID: id, TenantID: tenant, InstanceID: "instance-" + id, InsertedAtUtc: at, FirstFailureAtUtc: at, LastFailureAtUtc: at}
	if _, err := engine.NewDeadLetters(b.Tables, "").Add(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return letters + "/store/" + url.PathEscape(d.Key())
}

// publish adds an event of a tenant, without a route, and returns the address of its page.
func (b bench) publish(t *testing.T, tenant string) string {
	t.Helper()
	o, err := outbox.New(outbox.Config{Tables: b.Tables, Queues: b.Queues, Blobs: b.Blobs, Options: outbox.DefaultOptions(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	added, err := outbox.NewWriter(o).Add(t.Context(), outbox.Message{TenantID: tenant, EventType: "key.rotated", Payload: json.RawMessage(`{"days": 9007199254740993}`), CorrelationID: "work-1"})
	if err != nil {
		t.Fatal(err)
	}
	return console.Root + "/outbox/" + tenant + "/" + added.ID
}

// damage deletes the first round of a run, without which it cannot continue.
func (b bench) damage(t *testing.T, id string) {
	t.Helper()
	if err := b.Tables.Apply(t.Context(), "orchestrations", tables.Delete(tables.Key{Partition: tables.EscapeKey(id), Row: "r-00000001-00000001"}, "")); err != nil {
		t.Fatal(err)
	}
}

// index updates the list of runs, which the app writes slightly later than runs: it is repaired in three slices.
func (b bench) index() {
	for range 3 {
		b.Tick("orchestration-sweep-timer", time.Now())
	}
}

// anew ends the process of the app, which writes the pending list entries, and starts another one.
func (b bench) anew() { b.Restart(inAzure(), func(*handler.Config) {}) }

// inAzure returns the settings of an app with sign-in.
func inAzure() map[string]string {
	return map[string]string{"WEBSITE_AUTH_ENABLED": "True", "WEBSITE_SITE_NAME": "app", "AZURE_FUNCTIONS_ENVIRONMENT": "Production", "FUNCTIONS_CORETOOLS_ENVIRONMENT": "",
		"ROUNDHOUSE_HOME_TENANT": accesstest.ID("home"), "ROUNDHOUSE_ROLES": `{"otherTenants": "reader"}`}
}

// The callers: ann has a role of the home tenant, approvers may claim tasks, pat has no role, and mallory is the
// administrator of another tenant.
func ann(role string) accesstest.Caller {
	return accesstest.Caller{Tenant: "home", Object: "ann", Name: "ann@example.com", AppRoles: []string{"Roundhouse." + role}}
}

func approver(tenant, name string) accesstest.Caller {
	return accesstest.Caller{Tenant: tenant, Object: name, Name: name + "@example.com", AppRoles: []string{"approver"}}
}

func pat() accesstest.Caller {
	return accesstest.Caller{Tenant: "home", Object: "pat", Name: "pat@example.com"}
}

func mallory() accesstest.Caller {
	return accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
}

// get requests a page as a caller.
func (b bench) get(t *testing.T, path string, as accesstest.Caller, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Host = "app.example"
	for _, c := range append(change, as.Sign) {
		c(r)
	}
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, r)
	return rec
}

// post sends a form like a page of the console.
func (b bench) post(t *testing.T, path string, form url.Values, as accesstest.Caller) *httptest.ResponseRecorder {
	t.Helper()
	return b.postBody(t, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()), as)
}

func (b bench) postBody(t *testing.T, path, contentType string, body io.Reader, as accesstest.Caller) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
	r.Host = "app.example"
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	as.Sign(r)
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, r)
	return rec
}

// sees checks that a caller who requests a page gets a status, and each text, except those that begin with "!", which
// must be missing. It returns the page.
func (b bench) sees(t *testing.T, path string, as accesstest.Caller, status int, texts ...string) string {
	t.Helper()
	rec := b.get(t, path, as)
	holds(t, "GET "+path, rec, status, texts)
	return rec.Body.String()
}

// leads checks that a form leads to an address, however often it is sent.
func (b bench) leads(t *testing.T, path string, form url.Values, as accesstest.Caller, to string) {
	t.Helper()
	for range 2 {
		if rec := b.post(t, path, form, as); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != to {
			t.Fatalf("POST %s: %d to %s, want %s: %s", path, rec.Code, rec.Header().Get("Location"), to, said(rec))
		}
	}
}

// refuses checks that a form gets a status, and a page with each text, like sees.
func (b bench) refuses(t *testing.T, path string, form url.Values, as accesstest.Caller, status int, texts ...string) {
	t.Helper()
	holds(t, "POST "+path, b.post(t, path, form, as), status, texts)
}

func holds(t *testing.T, what string, rec *httptest.ResponseRecorder, status int, texts []string) {
	t.Helper()
	if rec.Code != status {
		t.Errorf("%s: %d, want %d: %s", what, rec.Code, status, said(rec))
	}
	for _, text := range texts {
		if not, negated := strings.CutPrefix(text, "!"); negated == strings.Contains(rec.Body.String(), not) {
			t.Errorf("%s: %q is there: %v: %s", what, not, negated, said(rec))
		}
	}
}

var tags = regexp.MustCompile(`<[^>]*>|\s+`)

// said returns the beginning of a page's text, without the common parts.
func said(rec *httptest.ResponseRecorder) string {
	_, main, _ := strings.Cut(rec.Body.String(), "<main")
	return fmt.Sprintf("%.300s", strings.Join(strings.Fields(tags.ReplaceAllString(main, " ")), " "))
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// form opens a page, and returns the values that its forms send unfilled.
func (b bench) form(t *testing.T, path string, as accesstest.Caller) url.Values {
	t.Helper()
	return hiddenOf(t, path, b.get(t, path, as))
}

func hiddenOf(t *testing.T, path string, rec *httptest.ResponseRecorder) url.Values {
	t.Helper()
	out := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(rec.Body.String(), -1) {
		if value := html.UnescapeString(m[2]); !slices.Contains(out[m[1]], value) {
			out.Add(m[1], value)
		}
	}
	if rec.Code != http.StatusOK || len(out) == 0 {
		t.Fatalf("%s: %d, and no form: %s", path, rec.Code, said(rec))
	}
	return out
}

// with returns a form with some values filled in.
func with(form url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for name, values := range form {
		out[name] = values
	}
	for n := 0; n < len(pairs); n += 2 {
		out.Set(pairs[n], pairs[n+1])
	}
	return out
}

// acts returns a caller's decisions in the audit log, oldest first.
func (b bench) acts(t *testing.T, who accesstest.Caller) (acts []string) {
	t.Helper()
	for from := ""; ; {
		page, err := (&audit.Log{Tables: b.Tables}).List(t.Context(), audit.Filter{Principal: who.ID()}, 100, from)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			acts = append(acts, e.Name+" "+e.Action+" "+string(e.Outcome))
		}
		if from = page.Next; from == "" {
			slices.Reverse(acts)
			return acts
		}
	}
}

// acted checks that these are a caller's decisions; the audit log may repeat each in a row.
func (b bench) acted(t *testing.T, who accesstest.Caller, want ...string) {
	t.Helper()
	for n := range want {
		want[n] = who.Name + " " + want[n]
	}
	if diff := cmp.Diff(want, slices.Compact(b.acts(t, who))); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

// statuses checks the statuses of the dead letters of "store", by their correlation ids.
func (b bench) statuses(t *testing.T, want map[string]engine.DeadLetterStatus) {
	t.Helper()
	got := map[string]engine.DeadLetterStatus{}
	for _, d := range b.DeadLetters("store") {
		got[d.CorrelationID] = d.Status
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
}

var statusChip = regexp.MustCompile(`<span class="chip" data-status="(\w+)">`)

// stands checks the status on the page of a run.
func (b bench) stands(t *testing.T, path, want string) {
	t.Helper()
	rec := b.get(t, path, ann("Reader"))
	if m := statusChip.FindStringSubmatch(rec.Body.String()); m == nil || m[1] != want {
		t.Errorf("%s: %d: it is %q, want %s", path, rec.Code, m, want)
	}
}
