package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/appservice"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// nowhere is an unreachable storage account.
const nowhere = "DefaultEndpointsProtocol=http;AccountName=acct1;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:1/a;QueueEndpoint=http://127.0.0.1:1/a;TableEndpoint=http://127.0.0.1:1/a"

// down returns a world whose app does not run: only storage is available.
func down(t *testing.T) (w *world, connection string) {
	t.Helper()
	w = &world{url: "http://127.0.0.1:1"}
	return w, storage.Account(t).ConnectionString()
}

// register registers engines in storage, as an app does when it starts.
func register(t *testing.T, store *azure.Tables) {
	t.Helper()
	history := engine.NewHistory(store, "")
	must(t, history.CreateTable(t.Context()))
	must(t, history.Register(t.Context(), []engine.Description{{Name: "hmac", Queue: hmac.Queue, Operations: []string{"rotate"}}, {Name: "update-publisher", Queue: "none"}}, []string{"hmac", "outbox"}))
}

// Commands that must work without the app work on storage.
func TestStraightToStorage(t *testing.T) {
	t.Parallel()
	w, connection := down(t)
	store, err := azure.NewTables(storage.Account(t))
	must(t, err)
	w.history, w.letters = engine.NewHistory(store, ""), engine.NewDeadLetters(store, "")
	must(t, w.history.CreateTable(t.Context()), w.letters.CreateTable(t.Context()))
	register(t, store)
	now := time.Now().UTC().Truncate(time.Microsecond)
	entry := w.record(t, "down-1", now)
	letter := w.deadLetter(t, "down-2", "vault said no", now)
	w.want(t, 0, []string{"No such process"}, "nodes", "--state", "gone", "--storage", connection)
	started(t, "down-node", store)
	for _, step := range []struct {
		args  string
		code  int
		texts []string
	}{
		{"history list --correlation-id down-1", 0, []string{"rotate", "down-1"}},
		{"history show hmac " + entry.RowKey, 0, []string{`{"version":"v2"}`}},
		{"history show hmac nothing", 3, nil},
		{"dlq list --correlation-id run-down-2", 0, []string{letter}},
		{"dlq show hmac " + letter, 0, []string{"vault said no"}},
		{"dlq counts", 0, []string{"update-publisher"}},
		{"timeline down-1", 0, []string{"rotate of i-1"}},
		{"dlq resolve hmac " + letter + " --notes done", 0, []string{"Resolved"}},
		{"whoami", 0, []string{"local", "administrator"}},
		{"audit list --target dlq/hmac/" + letter, 0, []string{"decide", "Done"}},
		{"audit export", 0, []string{`"door":"cli"`}},
		{"registry add down-i --ring early", 0, []string{"down-i"}},
		{"registry list --ring early", 0, []string{"down-i"}},
		{"registry drain down-i --yes", 0, []string{"drain/local/"}},
		{"registry set down-i --ring late", 0, []string{"late"}},
		{"registry resume down-i", 0, nil},
		{"registry show down-i", 0, []string{"late"}},
		{"nodes --state alive", 0, []string{"down-node", "alive"}},
	} {
		w.want(t, step.code, step.texts, append(strings.Fields(step.args), "--storage", connection)...)
		check(t, w.runWith(t, map[string]string{storageSetting: connection}, append(strings.Fields(step.args), "--storage", "settings")...), step.code, step.texts)
	}
	w.want(t, 0, []string{"remains"}, "registry", "remove", "down-i", "--yes", "--storage", connection)
	d, err := w.letters.Get(t.Context(), "hmac", letter)
	if must(t, err); !strings.Contains(d.ResolvedBy, "@") {
		t.Errorf("resolved by %q", d.ResolvedBy)
	}
	w.want(t, 5, []string{"is the storage account there?"}, "history", "list", "--storage", nowhere)
	w.want(t, 2, []string{"--storage", "part 1"}, "history", "list", "--storage", "what")
	if r := w.want(t, 2, []string{"AccountKey"}, "history", "list", "--storage", "AccountName=acct1;AccountKey=c2VjcmV0!"); strings.Contains(r.err, "c2VjcmV0") {
		t.Error(r.err)
	}
	w.want(t, 2, []string{storageSetting}, "history", "list", "--storage", "settings")
}

// started adds the row of a process to storage.
func started(t *testing.T, name string, store *azure.Tables) {
	t.Helper()
	n, err := nodes.New(nodes.Config{Tables: store, Queues: queues.NewMemory(), Queue: "q", Name: name,
		TakeOver: func(context.Context, nodes.Lost, func(int)) error { return nil }})
	must(t, err, store.CreateTable(t.Context(), hostlock.DefaultTable))
	defer n.Close()
	must(t, n.Start(t.Context()))
}

func TestSend(t *testing.T) {
	t.Parallel()
	w, connection := down(t)
	store, err := azure.NewQueues(storage.Account(t))
	must(t, err)
	must(t, store.CreateQueue(t.Context(), hmac.Queue))
	inTables, err := azure.NewTables(storage.Account(t))
	must(t, err)
	register(t, inTables)
	w.want(t, 0, []string{"hmac", "rotate", hmac.Queue}, "engines", "--storage", connection)
	w.want(t, 0, []string{"hmac"}, "__complete", "--storage", connection, "send", "h")
	w.want(t, 2, []string{`there is no engine "nobody"`, "hmac, update-publisher"}, "send", "nobody", "--storage", connection)
	large := file(t, `{"slot":"`+strings.Repeat("x", 50<<10)+`"}`)
	for _, tt := range []struct {
		args  []string
		stdin string
		want  engine.Message
	}{
		{args: []string{"--operation", "rotate", "--instance", "i-1", "--tenant", "t", "--correlation-id", "c"},
			want: engine.Message{Engine: "hmac", Operation: "rotate", InstanceID: "i-1", TenantID: "t", CorrelationID: "c"}},
		{args: []string{"--input", `{"slot":"a"}`, "--correlation-id", "c"}, want: engine.Message{Engine: "hmac", CorrelationID: "c", Input: []byte(`{"slot":"a"}`)}},
		{args: []string{"--input", "-", "--correlation-id", "c"}, stdin: `{"slot":"b"}`, want: engine.Message{Engine: "hmac", CorrelationID: "c", Input: []byte(`{"slot":"b"}`)}},
		{args: []string{"--input", "@" + file(t, `{"slot":"c"}`), "--correlation-id", "c"}, want: engine.Message{Engine: "hmac", CorrelationID: "c", Input: []byte(`{"slot":"c"}`)}},
	} {
		m, out, errs := w.main(map[string]string{storageSetting: connection})
		m.Stdin = strings.NewReader(tt.stdin)
		if code := m.Run(t.Context(), append([]string{"send", "hmac", "-o", "json"}, tt.args...)); code != exitOK {
			t.Fatalf("%v: %d %s", tt.args, code, errs)
		}
		var told sent
		must(t, json.Unmarshal(out.Bytes(), &told))
		got, err := store.Receive(t.Context(), hmac.Queue, 1, time.Minute)
		must(t, err)
		var message engine.Message
		must(t, json.Unmarshal(queues.Decode(got[0].Text), &message), store.Delete(t.Context(), hmac.Queue, got[0].ID, got[0].PopReceipt))
		if got[0].ID != told.MessageID || told.Queue != hmac.Queue || told.CorrelationID != "c" || string(mustJSON(t, message)) != string(mustJSON(t, tt.want)) {
			t.Errorf("%v: %+v, %+v", tt.args, told, message)
		}
	}
	w.want(t, 0, []string{"Correlation id ", "roundhouse timeline "}, "send", "hmac", "--storage", connection)
	left, err := store.Receive(t.Context(), hmac.Queue, 32, time.Minute)
	must(t, err)
	for _, m := range left { // the next run of this test finds the queue in its initial state
		must(t, store.Delete(t.Context(), hmac.Queue, m.ID, m.PopReceipt))
	}
	// The app creates the container for large inputs.
	w.want(t, 3, []string{"not found"}, "send", "hmac", "--input", "@"+large, "--storage", connection)
	w.want(t, 3, []string{"has it run with this storage account"}, "send", "update-publisher", "--storage", connection)
	w.want(t, 2, []string{"--input is no JSON"}, "send", "hmac", "--input", "{", "--storage", connection)
	w.want(t, 2, []string{"nested too deep: 500 levels"}, "send", "hmac", "--input", strings.Repeat("[", 500)+strings.Repeat("]", 500), "--storage", connection)
	w.want(t, 5, []string{"is the storage account there?"}, "send", "hmac", "--storage", nowhere)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return text
}

// doctor reports that everything is fine, or the problems; and it leaves nothing behind.
func TestDoctor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	connection := storage.Account(t).ConnectionString()
	must(t, w.outbox.Create(t.Context()))
	r := w.want(t, 0, []string{"app settings", "health/live says pass", "release 1.2.3", "outbox:backlog", "storage clock", "written, read and deleted", "schema versions"}, "doctor", "--storage", connection)
	if strings.Contains(r.out, functionKey) || strings.Contains(r.out, "fail  ") {
		t.Error(r.out)
	}
	r = w.want(t, 1, []string{"checks failed", "The key or token is not accepted"}, "doctor", "--storage", connection, "--key", "other", "-o", "json")
	var report struct{ Items []finding }
	if must(t, json.Unmarshal([]byte(r.out), &report)); len(report.Items) < 6 {
		t.Errorf("%+v", report)
	}
	w.want(t, 1, []string{"fail  app answers", "start the app", "ok    storage tables"}, "doctor", "--storage", connection, "--url", "http://127.0.0.1:1")
	w.want(t, 1, []string{"fail  storage tables", "fail  storage queues", "fail  storage blobs", "ports included"}, "doctor", "--storage", nowhere)
	w.want(t, 1, []string{"fail  storage settings"}, "doctor", "--storage", "what")
	w.want(t, 1, []string{"fail  app settings", "ok    storage tables"}, "doctor", "--storage", connection, "--url", "ftp://a")
}

// Remedies are for failures only, and never name the running command.
func TestDoctorAdvises(t *testing.T) {
	t.Parallel()
	w, connection := down(t)
	other := regexp.MustCompile("AccountKey=[^;]*").ReplaceAllString(connection, "AccountKey=c2VjcmV0")
	for _, tt := range []struct {
		storage    string
		want, lack string
	}{
		{nowhere, "ports included", "roles"},
		{other, "roles of docs/settings.md", "ports included"},
	} {
		r := w.want(t, exitFailed, []string{tt.want, "-> start the app"}, "doctor", "--storage", tt.storage)
		for _, lack := range []string{tt.lack, "roundhouse doctor", "is the app running"} {
			if strings.Contains(r.out, lack) {
				t.Errorf("%q in\n%s", lack, r.out)
			}
		}
	}
	for err, want := range map[error]string{tables.ErrThrottled: "try again", tables.ErrNotFound: "endpoint"} {
		if got := storageFix(fmt.Errorf("probe: %w", err)); !strings.Contains(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// A named app needs a named storage account: the account of the settings here may be another app's.
func TestDoctorOfTwoApps(t *testing.T) {
	t.Parallel()
	w, connection := down(t)
	const warned = "warn  same app"
	settings := map[string]string{storageSetting: connection}
	for _, tt := range []struct {
		want bool
		args []string
	}{
		{true, []string{"--url", w.url}},
		{false, []string{"--url", w.url, "--storage", connection}},
		{false, []string{"--url", w.url, "--storage", "settings"}},
		{false, nil},
	} {
		r := w.runWith(t, settings, append([]string{"doctor"}, tt.args...)...)
		if strings.Contains(r.out, warned) != tt.want {
			t.Errorf("%q:\n%s", tt.args, r.out)
		}
	}
}

// Clock differences are a warning, and so is a warning of a health report.
func TestDoctorWarns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refusing(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		rec := httptest.NewRecorder()
		if strings.HasSuffix(r.URL.Path, "/full") {
			rw.WriteHeader(http.StatusServiceUnavailable)
			_, _ = rw.Write([]byte(`{"status":"fail","checks":{"a:b":[{"status":"warn","output":"slow"}],"c:d":[{"status":"fail","output":"gone"}]}}`))
			return
		}
		_, _ = rec.Write([]byte(`{"status":"pass"}`))
		_, _ = rw.Write(rec.Body.Bytes())
	})
	w.want(t, 1, []string{"warn  app clock", "-1h0m", "warn  a:b", "slow", "fail  c:d", "gone"}, "doctor", "--storage", "what")
}

// doctor's version is that of the runtime's rows.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin(t, "a1", "")
	row, err := w.tables.Get(t.Context(), orchestrationTable, tables.Key{Partition: "a1", Row: statusRow})
	if must(t, err); row.Int(schemaColumn) != knownSchema {
		t.Errorf("version %d", row.Int(schemaColumn))
	}
	must(t, versions(t.Context(), w.tables), versions(t.Context(), tables.NewMemory()))
	row.Properties[schemaColumn] = int64(knownSchema + 1)
	must(t, w.tables.Apply(t.Context(), orchestrationTable, tables.Replace(row)))
	if err := versions(t.Context(), w.tables); err == nil || errors.Is(err, tables.ErrNotFound) {
		t.Error(err)
	}
}

// signIn gives the process an identity, with the token "the-token" for api://app.
func signIn(t *testing.T) {
	t.Helper()
	for _, setting := range appservice.Start(t, map[string]string{"api://app": "the-token"}).Environment(t) {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
}

// With a scope, requests have the token of the environment's identity.
func TestEntra(t *testing.T) { // it sets the environment of the process
	w := newWorld(t)
	signIn(t)
	var bearer atomic.Value
	w.refusing(func(rw http.ResponseWriter, r *http.Request) {
		bearer.Store(r.Header.Get("Authorization"))
		_, _ = rw.Write([]byte(`{"status":"Succeeded","data":{"items":[]}}`))
	})
	w.want(t, 0, []string{"There are no such entries."}, "history", "list", "--entra", "api://app/.default")
	if got := bearer.Load(); got != "Bearer the-token" {
		t.Errorf("authorization %v", got)
	}
	r := w.want(t, exitRefused, []string{"No token for api://other/.default"}, "history", "list", "--entra", "api://other/.default")
	if strings.Contains(r.err, "the-token") || strings.Count(r.err, "\n") != 1 {
		t.Error(r.err)
	}
}
