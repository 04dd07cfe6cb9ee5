package api

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/admin"
	"github.com/vibedata/roundhouse/tables"
)

// secretOfDatabases is in the connection strings of the pollers of a bench.
const secretOfDatabases = "hunter2-of-the-shop"

// benchPollers returns the pollers of a bench: "orders", of a SQLite file with the rows 1 to 9, "parts", whose state
// is in the table, and "away", whose database is missing.
func benchPollers(t *testing.T, inTables tables.Store, inBlobs blobs.Store) *admin.Admin {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	const definition = `%q: {"connection": {"setting": "DSN"}, "source": {"dialect": %q, "sourceId": "shop", "table": "orders", "cursor": "id", "keys": ["id"]},
		"deliver": {"engine": {"engine": "hmac"}}, "state": %q}`
	settings, err := poller.ParseSettings("{" + fmt.Sprintf(definition, "orders", "sqlite", "blob") + "," + fmt.Sprintf(definition, "parts", "sqlite", "table") + "," +
		fmt.Sprintf(definition, "away", "postgres", "blob") + "}")
	a := &admin.Admin{Blob: poller.BlobStore{Blobs: inBlobs}, Table: poller.TableStore{Tables: inTables}, Settings: settings,
		DSN: func(_ context.Context, s poller.Setting) (string, error) {
			if s.Name == "away" {
				return "postgres://shop:" + secretOfDatabases + "@127.0.0.1:1/shop?connect_timeout=1", nil
			}
			return "file:" + path, nil
		}}
	testenv.OK(t, errors.Join(err, a.Blob.Create(t.Context()), a.Table.Create(t.Context())))
	return a
}

// benchCounts returns the counts of a bench's process.
func benchCounts() map[string]poller.Counters {
	return map[string]poller.Counters{"orders": {Ticks: 12, Failures: 2, Rows: 7, BatchSize: 100, Lag: 1500 * time.Millisecond, HeldBack: "a transaction is open"}, "parts": {Lag: -1}}
}

// shop creates the table of the pollers of a bench.
func (b *outboxBench) shop(t *testing.T) {
	t.Helper()
	s, _ := b.pollers.Setting("orders")
	dsn, err := b.pollers.DSN(t.Context(), s)
	testenv.OK(t, err)
	db, err := sql.Open("sqlite", dsn)
	if err == nil {
		defer db.Close()
		_, err = db.ExecContext(t.Context(), `CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1), (5), (7), (9)`)
	}
	testenv.OK(t, err)
}

// stateAt returns the state of a poller at a row.
func stateAt(name string, row int) *poller.Document {
	return &poller.Document{Version: 1, PollerName: name, Lease: poller.Lease{Token: 41},
		Checkpoint: &poller.Checkpoint{Cursor: poller.Cursor{Kind: "integer", Value: fmt.Sprint(row)}, LastBatchID: "batch_1", UpdatedAt: time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC), Metadata: poller.Metadata{RowCount: 3}}}
}

// putState replaces a state.
func (b *outboxBench) putState(t *testing.T, name string, doc *poller.Document) {
	t.Helper()
	text, err := doc.Encode()
	testenv.OK(t, err)
	b.putText(t, name, text)
}

func (b *outboxBench) putText(t *testing.T, name string, text []byte) {
	t.Helper()
	store := b.pollers.Blob
	if s, ok := b.pollers.Setting(name); ok && s.State == poller.StateTable {
		store = b.pollers.Table
	}
	old, err := store.Load(t.Context(), name)
	if errors.Is(err, poller.ErrNotFound) {
		err = nil
	}
	if err == nil {
		_, err = store.Swap(t.Context(), name, text, old.ETag)
	}
	testenv.OK(t, err)
}

// leased returns a state with a live lease.
func leased(doc *poller.Document) *poller.Document {
	doc.Lease.Owner, doc.Lease.Nonce, doc.Lease.Expires = "node-1/ab", "n", time.Now().Add(time.Hour).UTC()
	return doc
}

// A list has defined pollers and those with a state, with their conditions and problems, in pages, and queries no
// database.
func TestPollersAreListed(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	failing := stateAt("orders", 7)
	failing.TickFailure = &poller.TickFailure{Error: "fetch sqlite orders: password=" + secretOfDatabases, Ticks: 144, FirstAt: b.now(), LastAt: b.now()}
	b.putState(t, "orders", failing)
	stopped := stateAt("parts", 5)
	stopped.Failure = &poller.Failure{Error: "the engine is away", Attempts: 6, Rows: 1, Breaker: true, NextAt: b.now()}
	b.putState(t, "parts", leased(stopped))
	b.putState(t, "running", leased(stateAt("running", 3)))
	b.putText(t, "damaged", []byte("{"))
	got := map[string]pollerItem{}
	var names []string
	for token, pages := "", 0; ; pages++ {
		rec := b.get(t, "/api/pollers?limit=2"+token)
		if rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), secretOfDatabases) {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
		page := data[list[pollerItem]](t, rec)
		for _, item := range page.Items {
			names, got[item.Name] = append(names, item.Name), item
		}
		if token = "&continuationToken=" + page.ContinuationToken; page.ContinuationToken == "" {
			break
		}
		if pages > 5 {
			t.Fatal("the list does not end")
		}
	}
	if want := []string{"away", "damaged", "orders", "parts", "running"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	conditions := map[string]poller.Condition{}
	for name, item := range got {
		conditions[name] = item.Condition
	}
	want := map[string]poller.Condition{"away": poller.New, "damaged": poller.Damaged, "orders": poller.Failing, "parts": poller.Stopped, "running": poller.Running}
	testenv.Equal(t, "", want, conditions)
	if o := got["orders"]; o.Failure == nil || o.Failure.Of != "tick" || o.Failure.Ticks != 144 || !strings.HasPrefix(o.Problem, "fetch sqlite orders") || o.Place != "7" || o.LastBatch.Rows != 3 ||
		o.Process.HeldBack != "a transaction is open" || *o.Process.LagSeconds != 1.5 || o.Source.Bound != "single-writer" || !o.SeenAtUtc.Equal(b.now()) {
		t.Errorf("%+v", o)
	}
	if p := got["parts"]; !p.Failure.Stopped || p.Failure.Of != "batch" || p.Process.LagSeconds != nil || p.Lease.Owner != "node-1/ab" || !p.Lease.Live || p.Lease.Token != 41 || p.Lease.UntilUtc.IsZero() {
		t.Errorf("%+v", p)
	}
	if r := got["running"]; r.Defined || r.Source != nil || r.Process != nil {
		t.Errorf("%+v", r)
	}
	if d := got["damaged"]; !strings.Contains(d.Problem, "state document damaged") {
		t.Errorf("%+v", d)
	}
	for query, status := range map[string]int{"?limit=0": 400, "?limit=1&continuationToken=x": 400, "?engine=x": 400} {
		expect(t, b.get(t, "/api/pollers"+query), status, "", "%s", query)
	}
}

// A poller is shown with its settings, without the connection string, and its stored state; a missing one is not
// found.
func TestPollerIsShown(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.putState(t, "orders", stateAt("orders", 7))
	rec := b.get(t, "/api/pollers/orders")
	d := data[pollerDetail](t, rec)
	if s := d.Settings; s == nil || s.Connection.Setting != "DSN" || s.Engine.Engine != "hmac" || s.Function != "poller-orders-timer" || s.LeaseTTL != "2m0s" || s.Definition.Object != "orders" || !s.Quarantines {
		t.Errorf("%+v", d.Settings)
	}
	if !strings.Contains(string(d.Document), `"fencing_token":41`) || strings.Contains(rec.Body.String(), "shop.db") {
		t.Errorf("%s", rec.Body)
	}
	if d := data[pollerDetail](t, b.get(t, "/api/pollers/away")); d.Condition != poller.New || d.Document != nil {
		t.Errorf("%+v", d)
	}
	for _, name := range []string{"nobody", "A%2F..%2Fb", strings.Repeat("a", 300)} {
		expect(t, b.get(t, "/api/pollers/"+name), http.StatusNotFound, "", "%.40s", name)
	}
}

// Each change has its effect, once for an Idempotency-Key, and is recorded with the state before.
func TestPollersAreChanged(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	for kind, c := range map[admin.Kind]struct{ body, place, other string }{
		admin.ResetToBeginning:  {"", "the beginning", `{"force":true}`},
		admin.ResetToCheckpoint: {`{"checkpoint":{"cursor":{"kind":"integer","value":"5"}}}`, "5", `{"checkpoint":{"cursor":{"kind":"integer","value":"6"}}}`},
		admin.ResetToCursor:     {`{"value":"5"}`, "5", `{"value":"6"}`},
		admin.CloneCheckpoint:   {`{"to":"copy"}`, "7", `{"to":"another"}`},
		admin.AcceptFingerprint: {"{}", "7", `{"force":true}`},
		admin.BreakLease:        {"{}", "7", `{"force":true}`},
		admin.Retire:            {"{}", "7", `{"force":true}`},
	} {
		b.putState(t, "orders", stateAt("orders", 7))
		path := "/api/pollers/orders/" + string(kind)
		dry := strings.Replace("{"+strings.TrimPrefix(cmpOr(c.body, "{}"), "{"), "{", `{"dryRun":true,`, 1)
		dry = strings.Replace(dry, ",}", "}", 1)
		if e := data[pollerEffect](t, b.send(t, http.MethodPost, path, dry)); e.Applied || e.After.Place != c.place {
			t.Errorf("%s, dry: %+v", kind, e)
		}
		if d := data[pollerDetail](t, b.get(t, "/api/pollers/orders")); d.Lease.Token != 41 {
			t.Errorf("%s: a dry run has changed %+v", kind, d)
		}
		headers := []string{"Idempotency-Key", "key-of-" + string(kind)}
		first := data[pollerEffect](t, b.send(t, http.MethodPost, path, c.body, headers...))
		again := data[pollerEffect](t, b.send(t, http.MethodPost, path, c.body, headers...))
		wantToken := int64(42)
		if kind == admin.CloneCheckpoint {
			wantToken = 0
		}
		if !first.Applied || first.Repeated || first.After.Place != c.place || first.After.Token != wantToken || first.After.Retired != (kind == admin.Retire) {
			t.Errorf("%s: %+v", kind, first)
		}
		if !again.Applied || !again.Repeated || again.After.Token != wantToken {
			t.Errorf("%s, again: %+v", kind, again)
		}
		if rec := b.send(t, http.MethodPost, path, c.other, headers...); kind != admin.CloneCheckpoint && (rec.Code != http.StatusUnprocessableEntity || code(t, rec) != codeKeyReused) {
			t.Errorf("%s, another request under the key: %d %s", kind, rec.Code, rec.Body)
		}
	}
	page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Target: "pollers/orders"}, 100, "")
	testenv.OK(t, err)
	found := false
	for _, e := range page.Entries {
		found = found || e.Action == "reset-to-cursor to 5" && e.Outcome == audit.Done && strings.HasPrefix(e.Before, "at 7, token 41") && strings.HasPrefix(e.After, "at 5, token 42")
	}
	if !found || len(page.Entries) != 7*3 { // each, its repeat, and the other one
		t.Errorf("%d entries: %+v", len(page.Entries), page.Entries)
	}
}

// cmpOr returns the first text that is not empty.
func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// A refused change has no effect, names the remedy, and is recorded; by force the owner of a lease is fenced.
func TestPollerChangesAreRefused(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.putState(t, "orders", leased(stateAt("orders", 7)))
	b.putState(t, "copy", stateAt("copy", 1))
	b.putText(t, "damaged", []byte(`{"fencing_token": 12`))
	for name, c := range map[string]struct {
		path, body, code, text string
		status                 int
		recorded               bool
	}{
		"a live lease":       {"orders/retire", "", codePollerRunning, "node-1/ab has the lease", 409, true},
		"a clone that is":    {"orders/clone-checkpoint", `{"to":"copy"}`, codePollerExists, "already", 409, true},
		"a table's clone":    {"orders/clone-checkpoint", `{"to":"parts"}`, codeInvalidBody, "define both alike", 400, true},
		"no number":          {"orders/reset-to-cursor", `{"value":"x","force":true}`, codeInvalidBody, "no number", 400, true},
		"no value":           {"orders/reset-to-cursor", `{}`, codeInvalidParameter, "which value", 400, false},
		"keys of no object":  {"orders/reset-to-cursor", `{"value":"5","keys":[1]}`, codeInvalidParameter, "JSON object", 400, false},
		"no such kind":       {"orders/reset-to-cursor", `{"value":"5","kind":"x"}`, codeInvalidParameter, "Use one of", 400, false},
		"no checkpoint":      {"orders/reset-to-checkpoint", `{"checkpoint":5}`, codeInvalidBody, "JSON object", 400, false},
		"a bad checkpoint":   {"orders/reset-to-checkpoint", `{"checkpoint":{"a":1}}`, codeInvalidBody, "kind", 400, true},
		"no name":            {"orders/clone-checkpoint", `{"to":"A b"}`, codeInvalidBody, "a-z", 400, false},
		"no such member":     {"orders/retire", `{"why":1}`, codeInvalidBody, "no such member", 400, false},
		"no truth value":     {"orders/retire", `{"force":"yes"}`, codeInvalidBody, "truth value", 400, false},
		"no such poller":     {"nobody/retire", "", codeNotFound, "no such poller", 404, false},
		"no state":           {"away/retire", "", codeNotFound, "no such poller", 404, true},
		"a damaged state":    {"damaged/retire", "", codePollerDamaged, "reset-to-checkpoint", 409, true},
		"nothing is defined": {"copy/accept-fingerprint", "", codePollerUndefined, "do not define", 409, true},
	} {
		who := caller(name, "home", "keeper")
		rec := b.send(t, http.MethodPost, "/api/pollers/"+c.path, c.body, "X-MS-CLIENT-PRINCIPAL", who)
		if rec.Code != c.status || code(t, rec) != c.code || !strings.Contains(rec.Body.String(), c.text) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
		page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Principal: idOf(name, "home")}, 10, "")
		if err != nil || (len(page.Entries) == 1) != c.recorded || c.recorded && (page.Entries[0].Outcome != audit.Failed || page.Entries[0].After == "") {
			t.Errorf("%s: %+v, %v", name, page.Entries, err)
		}
	}
	if d := data[pollerDetail](t, b.get(t, "/api/pollers/orders")); d.Lease.Token != 41 || !d.Lease.Live || d.Place != "7" {
		t.Errorf("%+v", d)
	}
	if e := data[pollerEffect](t, b.send(t, http.MethodPost, "/api/pollers/orders/break-lease", `{"force":true}`)); !e.Fenced || e.After.Token != 42 || e.After.Owner != "" || e.Before.Owner != "node-1/ab" {
		t.Errorf("by force: %+v", e)
	}
	restored := data[pollerEffect](t, b.send(t, http.MethodPost, "/api/pollers/damaged/reset-to-checkpoint", `{"checkpoint":{"cursor":{"kind":"integer","value":"5"}},"force":true}`))
	if !restored.Applied || restored.After.Place != "5" || restored.After.Token != 13 {
		t.Errorf("restored: %+v", restored)
	}
}

// Readers see pollers and change none; users of a tenant see none. Refusals are recorded.
func TestPollersNeedPermission(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.putState(t, "orders", stateAt("orders", 7))
	for as, want := range map[string]struct{ list, change int }{
		caller("ada", "home", "keeper"):                   {200, 200},
		caller("olga", "home", "Roundhouse.Operator"):     {200, 403},
		caller("rita", "home", "Roundhouse.Reader"):       {200, 403},
		caller("pat", "home"):                             {403, 403},
		caller("tom", "red", "Roundhouse.Administrator"):  {403, 403},
		caller("tim", "red", "Roundhouse.Reader", "nope"): {403, 403},
	} {
		for path, status := range map[string]int{"/api/pollers": want.list, "/api/pollers/orders": want.list} {
			if rec := b.get(t, path, "X-MS-CLIENT-PRINCIPAL", as); rec.Code != status || status == 403 && strings.Contains(rec.Body.String(), "shop") {
				t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
			}
		}
		expect(t, b.send(t, http.MethodPost, "/api/pollers/orders/retire", "", "X-MS-CLIENT-PRINCIPAL", as), want.change, "", "retire")
	}
	page, err := door(b.tables).Audit.List(t.Context(), audit.Filter{Principal: idOf("rita", "home")}, 10, "")
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Outcome != audit.Refused || page.Entries[0].Permission != string(access.PollersChange) {
		t.Errorf("%+v, %v", page.Entries, err)
	}
}

// The database of one poller is queried for its end. Its error is shown without secrets.
func TestPollerLag(t *testing.T) {
	t.Parallel()
	b := newOutboxBench(t)
	b.shop(t)
	b.putState(t, "orders", stateAt("orders", 7))
	testenv.Equal(t, "the lag", pollerLag{Place: "7", End: "9"}, data[pollerLag](t, b.get(t, "/api/pollers/orders/lag")))
	b.putState(t, "orders", stateAt("orders", 9))
	if lag := data[pollerLag](t, b.get(t, "/api/pollers/orders/lag")); !lag.CaughtUp || lag.End != "9" {
		t.Errorf("%+v", lag)
	}
	b.putState(t, "away", stateAt("away", 9))
	rec := b.get(t, "/api/pollers/away/lag")
	if rec.Code != http.StatusServiceUnavailable || code(t, rec) != codeSourceUnavailable || strings.Contains(rec.Body.String()+b.log.String(), secretOfDatabases) || !strings.Contains(rec.Body.String(), "cannot be reached") {
		t.Errorf("%d %s\n%s", rec.Code, rec.Body, b.log.String())
	}
	b.putState(t, "copy", stateAt("copy", 1))
	for name, status := range map[string]int{"copy": 409, "nobody": 404, "parts": 404} {
		expect(t, b.get(t, "/api/pollers/"+name+"/lag"), status, "", "%s", name)
	}
}

// Databases are queried two at a time; a caller that has to wait too long is asked to retry.
func TestPollerLagWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testPollerLagWaitsForItsTurn)
}

func testPollerLagWaitsForItsTurn(t *testing.T) {
	b := newOutboxBench(t)
	asked, answer := make(chan struct{}, lagsAtOnce+1), make(chan struct{})
	b.pollers.DSN = func(ctx context.Context, _ poller.Setting) (string, error) {
		asked <- struct{}{}
		select {
		case <-answer:
			return "", errors.New("the vault is away")
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	b.putState(t, "orders", stateAt("orders", 7))
	ended := make(chan int, 2)
	for range lagsAtOnce {
		go func() { ended <- b.get(t, "/api/pollers/orders/lag").Code }()
		<-asked
	}
	impatient, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer leave()
	req, err := http.NewRequestWithContext(impatient, http.MethodGet, "/api/pollers/orders/lag", http.NoBody)
	testenv.OK(t, err)
	if rec := serve(b.echo, req); rec.Code != http.StatusServiceUnavailable || code(t, rec) != codeStorageUnavailable || len(asked) > 0 {
		t.Errorf("%d %s; it was its turn: %v", rec.Code, rec.Body, len(asked) > 0)
	}
	close(answer)
	for range lagsAtOnce {
		testenv.Equal(t, "status", http.StatusServiceUnavailable, <-ended)
	}
}
