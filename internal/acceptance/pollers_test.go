package acceptance

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the test

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// keyPollers are a poller whose rows rotate keys, a poller whose rows are events, and a poller without a database. A
// rejected row becomes a dead letter immediately.
const keyPollers = `{
	"keys": {"connection": {"setting": "KEYS_DSN"}, "schedule": "* * * * * *", "retry": {"attempts": 1},
		"source": {"dialect": "postgres", "sourceId": "shop", "table": "keys", "cursor": "change", "keys": ["id"], "bound": "xid"},
		"deliver": {"engine": {"engine": "hmac", "operation": "rotate", "instanceColumn": "instance", "inputColumn": "input"}}},
	"changes": {"connection": {"setting": "KEYS_DSN"}, "schedule": "* * * * * *", "state": "table",
		"source": {"dialect": "postgres", "sourceId": "shop", "table": "keys", "cursor": "change", "keys": ["id"], "bound": "xid"},
		"deliver": {"outbox": {"eventType": "key.wanted", "tenantColumn": "tenant", "ordered": true}}},
	"lost": {"connection": {"setting": "LOST_DSN"}, "schedule": "* * * * * *",
		"source": {"dialect": "postgres", "sourceId": "lost", "table": "nothing", "cursor": "id", "keys": ["id"]},
		"deliver": {"outbox": {"eventType": "nothing", "tenantId": "nobody"}}}}`

const (
	lostPassword = "lost-password"
	lostDSN      = "postgres://app:" + lostPassword + "@127.0.0.1:1/lost?connect_timeout=1"
	keysSchema   = `CREATE TABLE keys (id bigserial PRIMARY KEY, instance text, tenant text NOT NULL DEFAULT 'acme', input jsonb,
		change xid8 NOT NULL DEFAULT pg_current_xact_id())`
)

// polled is a platform with a database.
type polled struct {
	*platform
	sink *sink
	db   *sql.DB
	cli  commandLine
}

// TestPollers: rows become keys with their history, and events, once each. Rejected rows become dead letters, and the
// pollers continue despite faults and an operator's reset.
func TestPollers(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	ctx := testenv.Context(t)
	storage := testenv.Must(azurite.Start(ctx, azurite.Config{}))(t)
	t.Cleanup(func() { _ = storage.Close() })
	_, dsn := databases.Database(t)
	w := &polled{sink: newSink(t), db: testenv.Must(sql.Open("pgx", dsn))(t)}
	t.Cleanup(func() { _ = w.db.Close() })
	w.exec(t, keysSchema)
	env := []string{"KEYS_DSN=" + dsn, "LOST_DSN=" + lostDSN}
	// No handler dies here, and an overloaded machine must not send an event twice after a timeout.
	patient := append(env, "ROUNDHOUSE_OUTBOX="+w.sink.document(), "ROUNDHOUSE_OUTBOX_DELIVERY_TIMEOUT=30s", "ROUNDHOUSE_OUTBOX_CLAIM_DURATION=60s")
	w.platform = startWith(t, setup{account: storage.Account(), pollers: keyPollers, env: patient})
	w.cli = w.commandLine(t, append(env, "ROUNDHOUSE_POLLERS="+keyPollers)...)
	t.Run("rows become keys and events", w.testRows)
	t.Run("a row that no engine can take", w.testNoInstance)
	t.Run("a row that is not taken, and retried", w.testRetry)
	t.Run("a database that is not there", w.testLost)
	t.Run("the command line", w.testCommands)
}

func (w *polled) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	testenv.Must(w.db.ExecContext(t.Context(), statement, args...))(t)
}

// want inserts a row that requests the key of an instance.
func (w *polled) want(t *testing.T, instance, input any) {
	t.Helper()
	w.exec(t, "INSERT INTO keys (instance, input) VALUES ($1, $2)", instance, input)
}

// rotated waits for the one rotation of an instance.
func (w *polled) rotated(t *testing.T, instance string) {
	t.Helper()
	query := url.Values{"instanceId": {instance}, "operation": {hmac.OperationRotate}}
	testenv.Until(t, "the rotation of "+instance, func() bool { return len(w.list(t, "/api/history", query)) > 0 })
	entries := w.list(t, "/api/history", query)
	if len(entries) != 1 {
		t.Fatalf("%d rotations of %s", len(entries), instance)
	}
	w.succeeded(t, fmt.Sprint(entries[0]["correlationId"]), instance)
}

// events waits until each row has an event for its current state, and checks that each was sent once.
func (w *polled) events(t *testing.T) {
	t.Helper()
	var want []string
	rows := testenv.Must(w.db.QueryContext(t.Context(), "SELECT id || ' ' || change FROM keys ORDER BY id"))(t)
	defer rows.Close()
	for rows.Next() {
		var row string
		testenv.OK(t, rows.Scan(&row))
		want = append(want, row)
	}
	testenv.OK(t, rows.Err())
	times := map[string]int{}
	testenv.Until(t, "the events of all rows", func() bool {
		clear(times)
		for _, e := range w.sink.all() {
			if e.Type != "key.wanted" {
				continue
			}
			event := decode[struct {
				Poller string
				Key    struct{ ID int }
				Cursor struct{ Value string }
			}](t, e.Body)
			if event.Poller != "changes" || e.Tenant != "acme" {
				t.Errorf("event %s of %s", e.Body, e.Tenant)
			}
			times[fmt.Sprint(event.Key.ID, " ", event.Cursor.Value)]++
		}
		return !slices.ContainsFunc(want, func(row string) bool { return times[row] == 0 })
	})
	for row, n := range times {
		if n != 1 {
			t.Errorf("the event of row %s was sent %d times", row, n)
		}
	}
}

func (w *polled) testRows(t *testing.T) {
	var instances []string
	for i := range 5 {
		instances = append(instances, "polled-"+uuid.NewString())
		w.want(t, instances[i], []any{nil, `{"slot":"a"}`}[i%2])
	}
	for _, instance := range instances {
		w.rotated(t, instance)
	}
	w.events(t)
}

// deadRow waits for the one pending dead letter of the poller.
func (w *polled) deadRow(t *testing.T, reason string) item {
	t.Helper()
	query := url.Values{"engine": {"poller-keys"}, "status": {"Pending"}}
	testenv.Until(t, "the dead letter", func() bool { return len(w.list(t, "/api/dlq", query)) > 0 })
	items := w.list(t, "/api/dlq", query)
	if len(items) != 1 || !strings.Contains(fmt.Sprint(items[0]["errorMessage"]), reason) {
		t.Fatalf("dead letters %v", items)
	}
	return items[0]
}

// retry retries a dead letter over the API.
func (w *polled) retry(t *testing.T, letter item, want int) {
	t.Helper()
	path := fmt.Sprintf("/api/dlq/%s/%s/retry", letter["engine"], url.PathEscape(letter["rowKey"].(string)))
	if status, body := w.ask(t, http.MethodPost, path, nil, nil); status != want {
		t.Errorf("the retry is answered with %d %s, want %d", status, body, want)
	}
}

// testNoInstance: the row is a dead letter, and later rows continue. A retry cannot help; the repaired row is polled
// again.
func (w *polled) testNoInstance(t *testing.T) {
	behind, mended := "behind-"+uuid.NewString(), "mended-"+uuid.NewString()
	w.want(t, nil, nil)
	w.want(t, behind, nil)
	w.rotated(t, behind)
	letter := w.deadRow(t, "has no value in column instance")
	w.retry(t, letter, http.StatusUnprocessableEntity)
	w.exec(t, "UPDATE keys SET instance = $1, change = DEFAULT WHERE instance IS NULL", mended)
	w.rotated(t, mended)
	w.cli.run(t, 0, "dlq", "resolve", "poller-keys", letter["rowKey"].(string), "--notes", "mended")
	w.events(t)
}

// testRetry: the queue rejects a message. The retry of the row's dead letter sends it.
func (w *polled) testRetry(t *testing.T) {
	w.proxy.refuseIf(func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/"+hmac.Queue+"/messages")
	})
	defer w.proxy.refuseIf(nil)
	instance := "retried-" + uuid.NewString()
	w.want(t, instance, nil)
	letter := w.deadRow(t, "send row")
	w.proxy.refuseIf(nil)
	w.retry(t, letter, http.StatusOK)
	w.retry(t, letter, http.StatusOK)
	w.rotated(t, instance)
	w.events(t)
}

// testLost: the poller reports its error, and nothing more.
func (w *polled) testLost(t *testing.T) {
	testenv.Until(t, "the poller fails", func() bool {
		return w.seen(func(i localhost.Invocation) bool { return i.Function == "poller-lost-timer" && i.Err != nil }) > 1
	})
	log := testenv.Must(os.ReadFile(w.log))(t)
	told := 0
	for line := range strings.Lines(string(log)) {
		var l struct{ Poller, Error string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Poller == "lost" && strings.Contains(l.Error, "the database cannot be reached") {
			told++
		}
	}
	if told == 0 || strings.Contains(string(log), lostPassword) {
		t.Errorf("told %d times; the password is in the log: %v", told, strings.Contains(string(log), lostPassword))
	}
	if n := w.seen(func(i localhost.Invocation) bool {
		return strings.HasPrefix(i.Function, "poller-") && i.Function != "poller-lost-timer" && i.Err != nil
	}); n != 0 {
		t.Errorf("the other pollers failed %d times", n)
	}
}

// testCommands: an operator lists the pollers, and resets one. All of its rows are read again, and recognized.
func (w *polled) testCommands(t *testing.T) {
	for _, name := range []string{"keys", "changes"} {
		w.cli.shows(t, map[string]string{"poller list": name, "poller show " + name: name})
		testenv.Until(t, name+" has caught up", func() bool {
			out, _ := w.cli.run(t, 0, "poller", "lag", name, "-o", "json")
			return decode[struct{ CaughtUp bool }](t, []byte(out)).CaughtUp
		})
	}
	if out, _ := w.cli.run(t, 0, "poller", "show", "lost"); !strings.Contains(out, "failing") || !strings.Contains(out, "cannot be reached") || strings.Contains(out, lostPassword) {
		t.Errorf("what is wrong with the one that never got as far as a lease: %s", out)
	}
	before := w.state(t, "keys")
	w.cli.run(t, 4, "poller", "reset-to-beginning", "keys") // no terminal to confirm on

	rows := 0
	testenv.OK(t, w.db.QueryRowContext(t.Context(), "SELECT count(*) FROM keys").Scan(&rows))
	came := func(i localhost.Invocation) bool { return i.Function == "hmac-queue-trigger" && i.Err == nil }
	known := w.seen(came)
	w.cli.run(t, 0, "poller", "reset-to-beginning", "keys", "--yes")
	testenv.Until(t, "all rows have come again", func() bool { return w.seen(came) >= known+rows })
	w.drained(t, hmac.Queue)
	var after state
	testenv.Until(t, "the poller is where it was", func() bool {
		after = w.state(t, "keys")
		return cmp.Equal(after.Document.Checkpoint.Cursor, before.Document.Checkpoint.Cursor)
	})
	if was, is := before.Document.Lease.Token, after.Document.Lease.Token; is < was+2 {
		t.Errorf("token %d after %d: the reset and the next owner raise it", is, was)
	}
	for _, row := range w.list(t, "/api/history", url.Values{"engine": {hmac.Engine}, "operation": {hmac.OperationRotate}, "limit": {"100"}}) {
		w.rotated(t, fmt.Sprint(row["instanceId"]))
	}
	w.events(t)
	if done := w.list(t, "/api/audit", url.Values{"target": {"pollers/keys"}}); len(done) != 1 || done[0]["action"] != "reset-to-beginning" || done[0]["outcome"] != "Done" {
		t.Errorf("the audit log says of the poller %v", done)
	}
	if dead := w.list(t, "/api/dlq", url.Values{"status": {"Pending"}}); len(dead) != 0 {
		t.Errorf("dead letters %v", dead)
	}
}

// state is a state document as the command line prints it.
type state struct {
	Document struct {
		Checkpoint struct {
			Cursor struct {
				Value      string
				Tiebreaker struct{ ID int }
			}
		}
		Lease struct {
			Token int64 `json:"fencing_token"`
		}
	}
}

func (w *polled) state(t *testing.T, name string) state {
	t.Helper()
	out, _ := w.cli.run(t, 0, "poller", "show", name, "-o", "json")
	return decode[state](t, []byte(out))
}
