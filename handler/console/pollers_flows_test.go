package console_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/poller"
)

const pollerList = console.Root + "/pollers"

// newPolled is an app with two pollers: "orders", of a table with the rows 1 to 3, and "lost", whose connection string is not set.
func newPolled(t *testing.T, settings map[string]string) bench {
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
	const definition = `%q: {"connection": {"setting": %q}, "source": {"dialect": "sqlite", "sourceId": "shop", "table": "orders", "cursor": "id", "keys": ["id"]}, "deliver": {"engine": {"engine": "store"}}}`
	settings["ORDERS_DSN"] = dsn
	settings["ROUNDHOUSE_POLLERS"] = "{" + fmt.Sprintf(definition, "orders", "ORDERS_DSN") + "," + fmt.Sprintf(definition, "lost", "LOST_DSN") + "}"
	keep := orchestrator.NewActivity("keep", func(context.Context, string) (string, error) { return "", nil })
	run := func(ctx *orchestrator.Context, _ engine.Request[any]) (string, error) {
		return keep.Call(ctx, "").Await()
	}
	return bench{Host: handlertest.New(t, handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{{Name: "store", Queue: "store-queue", Orchestrator: engine.Orchestrate("store", run), Operations: []orchestrator.AnyActivity{keep}}}, nil
	}}, settings)}
}

// state is the state of the poller "orders".
func (b bench) state(t *testing.T) *poller.Document {
	t.Helper()
	v, err := poller.Operator{Store: poller.BlobStore{Blobs: b.Blobs}}.Show(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	return v.Document
}

// hold gives the lease of the poller "orders" to a process.
func (b bench) hold(t *testing.T) {
	t.Helper()
	store := poller.BlobStore{Blobs: b.Blobs}
	old, err := store.Load(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	doc := b.state(t)
	doc.Lease.Owner, doc.Lease.Nonce, doc.Lease.Expires = "node-7/ab", "n", time.Now().Add(time.Hour).UTC()
	text, err := doc.Encode()
	if err == nil {
		_, err = store.Swap(t.Context(), "orders", text, old.ETag)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var keyField = regexp.MustCompile(`<input type="hidden" name="key" value="([^"]+)">`)

// ask opens a page that asks for a change of the poller "orders", and gives what its form sends.
func (b bench) ask(t *testing.T, act string) url.Values {
	t.Helper()
	status, text := b.Do(http.MethodGet, pollerList+"/orders/"+act, "", ann("Administrator").Sign)
	found := keyField.FindStringSubmatch(text)
	if status != http.StatusOK || found == nil {
		t.Fatalf("%s: %d %s", act, status, text)
	}
	return url.Values{"key": {found[1]}}
}

// Somebody sees how pollers are, asks for the lag, and resets one: once however often the form is sent, and what is behind the place
// comes again.
func TestPollerIsReset(t *testing.T) {
	t.Parallel()
	b := newPolled(t, inAzure())
	if _, text := b.Do(http.MethodGet, pollerList, "", ann("Reader").Sign); strings.Count(text, ">New</span>") != 2 {
		t.Errorf("before the first tick: %s", text)
	}
	if !b.Tick("poller-orders-timer", time.Now()) || b.Tick("poller-lost-timer", time.Now()) {
		t.Fatal("orders does not run, or lost does")
	}
	b.Deliver()
	if _, text := b.Do(http.MethodGet, pollerList, "", ann("Reader").Sign); !strings.Contains(text, ">Idle</span>") || !strings.Contains(text, ">Failing</span>") || !strings.Contains(text, "LOST_DSN is not set") {
		t.Errorf("after the first tick: %s", text)
	}
	const orders = pollerList + "/orders"
	status, text := b.Do(http.MethodGet, orders+"?lag=now", "", ann("Reader").Sign)
	for _, want := range []string{"caught up", "End of the source</dt><dd><bdi>3</bdi>", "the engine <bdi>store</bdi>", "the setting <bdi>ORDERS_DSN</bdi>"} {
		if status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d: the page has no %q: %s", status, want, text)
		}
	}
	if strings.Contains(text, "shop.db") {
		t.Error("the page has the connection string")
	}
	before := b.state(t).Lease.Token
	form := b.ask(t, "reset-to-cursor")
	if rec := b.post(t, orders+"/reset-to-cursor", form, ann("Administrator")); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "Fill in: ") {
		t.Errorf("without a place: %d %s", rec.Code, rec.Body)
	}
	form.Set("value", "one")
	if rec := b.post(t, orders+"/reset-to-cursor", form, ann("Administrator")); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "It is no number") && !strings.Contains(rec.Body.String(), "it is no number") || !strings.Contains(rec.Body.String(), `value="one"`) {
		t.Errorf("no number: %d %s", rec.Code, rec.Body)
	}
	form.Set("value", "1")
	for range 2 {
		if rec := b.post(t, orders+"/reset-to-cursor", form, ann("Administrator")); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != orders+"?done=reset-to-cursor" {
			t.Fatalf("%d to %q: %s", rec.Code, rec.Header().Get("Location"), rec.Body)
		}
	}
	if d := b.state(t); d.Cursor().Value != "1" || d.Lease.Token != before+1 {
		t.Errorf("at %s with token %d, before %d", d.Cursor(), d.Lease.Token, before)
	}
	if _, text := b.Do(http.MethodGet, orders+"?done=reset-to-cursor", "", ann("Reader").Sign); !strings.Contains(text, "goes on behind the place") {
		t.Errorf("afterwards: %s", text)
	}
	if !b.Tick("poller-orders-timer", time.Now()) || b.state(t).Checkpoint.Metadata.RowCount != 2 {
		t.Errorf("rows behind the place: %+v", b.state(t).Checkpoint)
	}
	acts := b.acts(t, ann(""))
	if !slices.Contains(acts, "ann@example.com reset-to-cursor to 1 Done") || !slices.Contains(acts, "ann@example.com reset-to-cursor to one Failed") {
		t.Errorf("audit log: %q", acts)
	}
}

// Under a lease a change is refused with the form kept; by force the owner is fenced. What was retired is brought back.
func TestPollerIsRetiredByForce(t *testing.T) {
	t.Parallel()
	b := newPolled(t, inAzure())
	if !b.Tick("poller-orders-timer", time.Now()) {
		t.Fatal("it does not run")
	}
	b.hold(t)
	const orders = pollerList + "/orders"
	form := b.ask(t, "retire")
	if rec := b.post(t, orders+"/retire", form, ann("Administrator")); rec.Code != http.StatusConflict || !strings.Contains(rec.Body.String(), "node-7/ab has the lease") || !strings.Contains(rec.Body.String(), form.Get("key")) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	form.Set("force", "yes")
	if rec := b.post(t, orders+"/retire", form, ann("Administrator")); rec.Code != http.StatusSeeOther {
		t.Errorf("by force: %d %s", rec.Code, rec.Body)
	}
	if d := b.state(t); !d.Retired || d.Lease.Owner != "" {
		t.Errorf("%+v", d)
	}
	if _, text := b.Do(http.MethodGet, orders, "", ann("Administrator").Sign); !strings.Contains(text, ">Retired</span>") || !strings.Contains(text, "It is retired.") {
		t.Errorf("%s", text)
	}
	checkpoint := b.ask(t, "reset-to-checkpoint")
	checkpoint.Set("checkpoint", "{")
	if rec := b.post(t, orders+"/reset-to-checkpoint", checkpoint, ann("Administrator")); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "no JSON") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	checkpoint.Set("checkpoint", `{"cursor": {"kind": "integer", "value": 2}}`)
	if rec := b.post(t, orders+"/reset-to-checkpoint", checkpoint, ann("Administrator")); rec.Code != http.StatusSeeOther || b.state(t).Retired || b.state(t).Cursor().Value != "2" {
		t.Errorf("brought back: %d %s", rec.Code, rec.Body)
	}
	clone := b.ask(t, "clone-checkpoint")
	clone.Set("to", "lost") // which has only failed so far
	b.Tick("poller-lost-timer", time.Now())
	if rec := b.post(t, orders+"/clone-checkpoint", clone, ann("Administrator")); rec.Code != http.StatusSeeOther {
		t.Errorf("clone: %d %s", rec.Code, rec.Body)
	}
	for _, act := range []string{"accept-fingerprint", "break-lease", "reset-to-beginning"} {
		if rec := b.post(t, orders+"/"+act, b.ask(t, act), ann("Administrator")); rec.Code != http.StatusSeeOther {
			t.Errorf("%s: %d %s", act, rec.Code, rec.Body)
		}
	}
	if d := b.state(t); d.Checkpoint != nil {
		t.Errorf("%+v", d.Checkpoint)
	}
}

// Who may only look is shown the changes as disabled with the reason, and is refused; another tenant's people see nothing.
func TestPollersAreNotForEverybody(t *testing.T) {
	t.Parallel()
	b := newPolled(t, inAzure())
	if !b.Tick("poller-orders-timer", time.Now()) {
		t.Fatal("it does not run")
	}
	for _, role := range []string{"Reader", "Operator"} {
		status, text := b.Do(http.MethodGet, pollerList+"/orders", "", ann(role).Sign)
		if status != http.StatusOK || strings.Count(text, "<button type=\"button\" disabled") != 7 || !strings.Contains(text, "pollers.change") {
			t.Errorf("%s: %d %s", role, status, text)
		}
		if status, text := b.Do(http.MethodGet, pollerList+"/orders/retire", "", ann(role).Sign); status != http.StatusOK || !strings.Contains(text, `<button disabled aria-describedby="why">`) {
			t.Errorf("%s: %d %s", role, status, text)
		}
		if rec := b.post(t, pollerList+"/orders/reset-to-cursor", url.Values{"key": {"k"}}, ann(role)); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "pollers.change") {
			t.Errorf("%s: %d %s", role, rec.Code, rec.Body)
		}
	}
	if b.state(t).Retired {
		t.Error("it is retired")
	}
	if acts := b.acts(t, ann("")); len(acts) != 2 || !strings.HasSuffix(acts[0], "Refused") {
		t.Errorf("audit log: %q", acts)
	}
	red := accesstest.Caller{Tenant: "red", Object: "mallory", Name: "mallory@example.com", AppRoles: []string{"Roundhouse.Administrator"}}
	for _, path := range []string{pollerList, pollerList + "/orders", pollerList + "/orders?lag=now", pollerList + "/orders/retire"} {
		if status, text := b.Do(http.MethodGet, path, "", red.Sign); status != http.StatusForbidden || strings.Contains(text, "shop") || strings.Contains(text, "ORDERS_DSN") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if rec := b.post(t, pollerList+"/orders/retire", url.Values{"key": {"k"}}, red); rec.Code != http.StatusForbidden {
		t.Errorf("%d", rec.Code)
	}
}
