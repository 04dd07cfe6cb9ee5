package acceptance

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	_ "modernc.org/sqlite" // the driver of the poller

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/browser"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
)

const (
	// updatePictures is the environment variable that updates the pictures of the documents; pictures is their folder.
	updatePictures = "ROUNDHOUSE_UPDATE_PICTURES"
	pictures       = "../../docs/console"
	// rotationsTable is the table that the test's poller reads.
	rotationsTable = "CREATE TABLE rotations (id integer PRIMARY KEY, instance text NOT NULL, input text)"
)

// rotationsPoller converts each row of that table to a rotation.
const rotationsPoller = `{"rotations": {"connection": {"setting": "ROTATIONS_DSN"}, "schedule": "* * * * * *",
	"source": {"dialect": "sqlite", "sourceId": "keys", "table": "rotations", "cursor": "id", "keys": ["id"]},
	"deliver": {"engine": {"engine": "hmac", "instanceColumn": "instance", "inputColumn": "input"}}}}`

// looked is a user with two apps in a browser.
type looked struct {
	publisher, managed *platform
	sample             string // the correlation id of a rotation that succeeded
}

// TestConsole lets a user who knows only the printed address find a broken message, see its error, repair it and resend
// it by keyboard. Then it checks every page, over a real storage emulator, a local host and a real browser.
func TestConsole(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	l := newLooked(t)
	t.Run("a broken message is mended", l.testMended)
	t.Run("a task is answered", l.testAnswered)
	t.Run("every page of a publisher", l.testPages)
}

func newLooked(t *testing.T) *looked {
	t.Helper()
	server := testenv.Must(azurite.Start(t.Context(), azurite.Config{Accounts: []string{"managed"}}))(t)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	dsn := "file:" + filepath.Join(t.TempDir(), "keys.db")
	db := testenv.Must(sql.Open("sqlite", dsn))(t)
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range []string{rotationsTable, "INSERT INTO rotations (instance) VALUES ('instance-of-a-row')"} {
		testenv.Must(db.ExecContext(t.Context(), statement))(t)
	}
	l := &looked{publisher: startWith(t, setup{account: server.Account(), pollers: rotationsPoller, env: []string{"ROTATIONS_DSN=" + dsn, "ROUNDHOUSE_OUTBOX=" + newSink(t).document()}})}
	components := updatetest.Listen(t)
	components.Install("blue", "db", "1")
	l.managed = startWith(t, setup{account: server.AccountNamed("managed"), context: "managed-app", env: []string{"ROUNDHOUSE_INSTANCE_ID=blue", "ROUNDHOUSE_TENANT_ID=contoso",
		"ROUNDHOUSE_UPDATE_ENDPOINT=" + components.URL, "ROUNDHOUSE_UPDATE_VERIFY_INTERVAL=100ms", `ROUNDHOUSE_UPDATE_APPROVAL={"stable":{"deadlineSeconds":3600,"roles":["approver"]}}`}})
	l.sample = uuid.NewString()
	l.publisher.send(t, hmac.Queue, rotation(l.sample, "sample-instance"))
	l.publisher.succeeded(t, l.sample, "sample-instance")
	return l
}

// signIn opens a browser at the address that the local host prints.
func signIn(t *testing.T, p *platform) *browser.Tab {
	t.Helper()
	b := browser.Open(t, p.host.URL())
	b.Do(chromedp.EmulateViewport(1000, 700))
	if status := b.Open(console.Root + "/?code=" + p.key); status != http.StatusOK || browser.Eval[string](b, `location.search`) != "" {
		t.Fatalf("signed in: %d at %s", status, browser.Eval[string](b, `location.href`))
	}
	return b
}

// picture takes the documents' picture of a page on request, and otherwise checks that it exists.
func picture(b *browser.Tab, name string) {
	b.T.Helper()
	path := filepath.Join(pictures, name+".png")
	if os.Getenv(updatePictures) != "" {
		b.Picture(path)
	}
	if _, err := os.Stat(path); err != nil {
		b.T.Errorf("the documents have no picture of this page: %v; run this test with %s=1", err, updatePictures)
	}
}

// walk follows links and buttons by keyboard in turn.
func walk(b *browser.Tab, steps ...string) {
	b.T.Helper()
	for _, step := range steps {
		b.TabTo(step)
		b.Enter()
	}
}

// shows reloads the page until it contains a text.
func shows(b *browser.Tab, text string) {
	b.T.Helper()
	testenv.Until(b.T, "a page that says "+text, func() bool {
		b.Do(chromedp.Reload())
		return strings.Contains(b.Text("main"), text)
	})
}

// testMended sends an invalid message, as the README does.
func (l *looked) testMended(t *testing.T) {
	const broken = "this is not JSON"
	if status, answer := l.publisher.ask(t, http.MethodPost, "/admin/functions/hmac-queue-trigger", nil, []byte(`{"input": "`+broken+`"}`)); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	testenv.Until(t, "the dead letter", func() bool {
		return len(l.publisher.list(t, "/api/dlq", url.Values{"status": {"Pending"}})) == 1
	})
	b := signIn(t, l.publisher)
	picture(b, "walk-1-home")
	// A page omits data that storage did not return in time: reload it until it has the link.
	reason := testenv.Await(t, "the link to the dead letter", func() (text string, ok bool) {
		text = strings.TrimSpace(browser.Eval[string](b, `document.querySelector("main a[href*='dead-letters']")?.textContent ?? ""`))
		if text == "" {
			b.Do(chromedp.Reload())
		}
		return text, text != ""
	})
	walk(b, reason)
	picture(b, "walk-2-list")
	walk(b, reason)
	if text := b.Text("main"); !strings.Contains(text, broken) {
		t.Errorf("the page does not show the message: %s", text)
	}
	picture(b, "walk-3-letter")
	letter := browser.Eval[string](b, `location.pathname`)
	walk(b, "Edit and retry")
	b.TabTo("TEXTAREA")
	browser.Eval[bool](b, `document.activeElement.select(); true`) // as Ctrl+A does
	b.Do(chromedp.KeyEvent(`{"engine": "hmac", "instanceId": "sample-instance"}`))
	picture(b, "walk-4-edit")
	walk(b, "Show what has changed")
	if text := b.Text("main"); !strings.Contains(text, broken) || !strings.Contains(text, "sample-instance") {
		t.Errorf("the page does not show what is different: %s", text)
	}
	picture(b, "walk-5-difference")
	walk(b, "Send the edited message")
	if at := browser.Eval[string](b, `location.pathname`); at != letter {
		t.Fatalf("it led to %s", at)
	}
	shows(b, "Succeeded")
	picture(b, "walk-6-mended")
	if open := l.publisher.list(t, "/api/dlq", url.Values{"status": {"Pending"}}); len(open) != 0 {
		t.Errorf("left over: %v", open)
	}
	edited := l.publisher.list(t, "/api/audit", url.Values{"limit": {"100"}})
	if !strings.Contains(fmt.Sprint(edited), "edit") {
		t.Errorf("the audit log does not say that it was edited: %v", edited)
	}
	b.Silent()
}

// testAnswered approves an update as a user.
func (l *looked) testAnswered(t *testing.T) {
	id := uuid.NewString()
	testenv.Until(t, "the own instance", func() bool { return len(l.managed.list(t, "/api/registry", nil)) == 1 })
	if status, answer := l.managed.ask(t, http.MethodPatch, "/api/registry/blue", nil, []byte(`{"ring":"stable"}`)); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	l.managed.send(t, update.Queue, at(update.Engine, update.Queue).message(t, engine.Message{CorrelationID: id, InstanceID: "blue", TenantID: "contoso",
		Input: []byte(`{"ring":"stable","version":"2.0.0","components":[{"name":"db","version":"2"}]}`)}))
	testenv.Until(t, "the task", func() bool { return len(l.managed.list(t, "/api/tasks", url.Values{"status": {"Created"}})) == 1 })
	b := signIn(t, l.managed)
	walk(b, "Tasks", "All")
	task := strings.TrimSpace(browser.Eval[string](b, `document.querySelector("main tbody a").textContent`))
	picture(b, "tasks")
	walk(b, task)
	picture(b, "task")
	page := browser.Eval[string](b, `location.pathname`)
	walk(b, "Claim", "Answer …")
	picture(b, "task-answer")
	b.TabTo("SELECT")
	b.Do(chromedp.KeyEvent("y"))
	for b.Focused() != "Answer" { // not the link to the JSON form
		b.TabTo("Answer")
	}
	b.Enter()
	shows(b, "Completed")
	b.Look(map[string]string{"tasks": console.Root + "/tasks?view=all", "task": page, "home of a managed application": console.Root}, nil)
	l.managed.ran(t, at(update.Engine, update.Queue), id, "process of blue Succeeded", "component-update of blue Succeeded Succeeded")
}

// testPages checks every page with the data so far.
func (l *looked) testPages(t *testing.T) {
	p := l.publisher
	dead := uuid.NewString()
	p.send(t, hmac.Queue, at(hmac.Engine, hmac.Queue).message(t, engine.Message{CorrelationID: dead, InstanceID: "instance-of-nobody", Input: []byte(`{"grace":"<script>document.title = 'owned'</script>"}`)}))
	p.buried(t, grave{entrance: at(hmac.Engine, hmac.Queue), correlationID: dead, count: 1})
	testenv.Until(t, "the work of the row", func() bool {
		return len(p.list(t, "/api/history", url.Values{"instanceId": {"instance-of-a-row"}})) > 0
	})
	if status, answer := p.ask(t, http.MethodPost, "/api/registry", nil, []byte(`{"instanceId":"blue","ring":"canary"}`)); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	status, answer := p.ask(t, http.MethodPost, "/api/dlq/expire", nil, []byte(`{"instanceId":"nothing","olderThanDays":0}`))
	operation := decode[struct{ Data struct{ ID string } }](t, answer).Data.ID
	if status != http.StatusAccepted {
		t.Fatalf("%d %s", status, answer)
	}
	if all := p.list(t, "/api/pollers", nil); len(all) != 1 || all[0]["name"] != "rotations" {
		t.Errorf("pollers: %v", all)
	}
	b := signIn(t, p)
	link := func(path, selector string) string {
		b.Open(console.Root + path)
		return browser.Eval[string](b, `(e => e ? e.getAttribute("href") : "")(document.querySelector("`+selector+`"))`)
	}
	letter := link("/dead-letters", "main td.first a")
	run := link("/orchestrations?idPrefix=hmac-"+l.sample, "main tbody a")
	event := link("/outbox?status=processed", "main tbody a")
	if letter == "" || run == "" || event == "" {
		t.Fatalf("no link to a dead letter, an orchestration or an event: %q %q %q", letter, run, event)
	}
	b.Look(map[string]string{
		"home": console.Root, "dead-letters": console.Root + "/dead-letters", "dead-letters-by-cause": console.Root + "/dead-letters/causes", "dead-letter": letter,
		"dead-letter-edit": letter + "/edit", "dead-letter-retry": letter + "/retry", "dead-letters-retry-all": console.Root + "/dead-letters/retry?engine=hmac",
		"orchestrations": console.Root + "/orchestrations", "orchestration": run, "orchestration-restart": run + "/restart", "start": console.Root + "/start", "start-hmac": console.Root + "/start/hmac",
		"open-a-history": console.Root + "/history", "timeline": console.Root + "/timeline?correlationId=" + l.sample, "outbox": console.Root + "/outbox?status=processed", "event": event,
		"pollers": console.Root + "/pollers", "poller": console.Root + "/pollers/rotations?lag=now", "poller-reset": console.Root + "/pollers/rotations/reset-to-cursor",
		"operations": console.Root + "/operations", "operation": console.Root + "/operations/" + operation, "schedules": console.Root + "/schedules",
		"registry": console.Root + "/registry", "instance": console.Root + "/registry/blue", "audit": console.Root + "/audit", "me": console.Root + "/me",
	}, func(name, how string) {
		if code := browser.Eval[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`); code != http.StatusOK {
			t.Errorf("%s: %d", name, code)
		}
		if how == "light" {
			picture(b, name)
		}
	})
	if n := p.seen(func(i localhost.Invocation) bool { return i.Violation() != nil }); n != 0 {
		t.Errorf("%d violations of the host's contract", n)
	}
	log, err := os.ReadFile(p.log)
	if err != nil || bytes.Contains(log, []byte(p.key)) {
		t.Errorf("the key is in the log, or %v", err)
	}
}
