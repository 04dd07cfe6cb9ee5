package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
	"github.com/vibedata/roundhouse/handler/console"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/nodes"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/poller"
)

// A task is found, claimed, answered wrongly and then correctly: under the approver's name, once, and the run
// continues.
func TestTaskIsAnswered(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure())
	ada := approver("home", "ada")
	b.sees(t, taskList+"?view=claim", ada, 200, work1, "!not you")
	b.sees(t, taskList, ada, 200, "!"+work1)
	b.leads(t, work1+"/claim", b.form(t, work1, ada), ada, work1+"?done=claimed") // the second time, it is already hers
	b.sees(t, taskList, ada, 200, work1)
	form := with(b.form(t, work1+"/complete", ada), "f0", "0", "f1", "0", "note", "looks right")
	b.refuses(t, work1+"/complete", form, ada, http.StatusUnprocessableEntity, "minimum", "looks right")
	b.leads(t, work1+"/complete", with(form, "f1", "7"), ada, work1+"?done=completed")
	b.Deliver()
	if got := b.Outcome("update-work-1"); string(got.Output) != `{"approved":true,"days":7}` {
		t.Errorf("the run: %+v", got)
	}
	acts := b.acts(t, ada)
	if !slices.Contains(acts, "ada@example.com claim Done") || !slices.Contains(acts, "ada@example.com complete Done") {
		t.Errorf("audit log: %v", acts)
	}
	b.sees(t, work1+"?done=completed", ann("Reader"), 200, ">Completed</span>", "ada@example.com", "looks right", "&#34;days&#34;: 7", "The task is completed")
}

// A task is assigned to another user, who releases it; an older form has no effect.
func TestTaskIsHandedOn(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure())
	ada, bo := approver("home", "ada"), approver("home", "bo")
	old := b.form(t, work1+"/complete", bo)
	b.leads(t, work1+"/claim", b.form(t, work1, ada), ada, work1+"?done=claimed")
	assign := with(b.form(t, work1+"/assign", ada), "assignee", bo.ID(), "assigneeName", "Bo")
	b.leads(t, work1+"/assign", assign, ada, work1+"?done=assigned")
	b.refuses(t, work1+"/complete", with(old, "f0", "1"), bo, http.StatusPreconditionFailed, `value="1" selected`)
	b.refuses(t, work1+"/release", url.Values{"key": {"k"}}, ada, http.StatusForbidden, "Bo has the task")
	b.refuses(t, work1+"/release", b.form(t, work1+"/release", bo), bo, http.StatusSeeOther)
	b.refuses(t, work1+"/claim", url.Values{"key": {"k"}}, pat(), http.StatusForbidden, "of which you have none")
}

// The audit log is filtered by target, caller and time, and callers see their permissions.
func TestAuditAndMe(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure())
	ada := approver("home", "ada")
	b.leads(t, work1+"/claim", b.form(t, work1, ada), ada, work1+"?done=claimed")
	const log = console.Root + "/audit"
	for query, found := range map[string]bool{"": true, "?target=" + url.QueryEscape("tasks/update-work-1/1-1"): true, "?principal=" + url.QueryEscape(ada.ID()): true,
		"?target=other": false, "?principal=" + url.QueryEscape(ann("").ID()): false, "?toDate=2020-01-01": false} {
		b.sees(t, log+query, ann("Administrator"), 200, map[bool]string{true: "ada@example.com", false: "!ada@example.com"}[found])
	}
	b.sees(t, console.Root+"/me", ada, 200, ada.ID(), "approver", "You need the permission <code>platform.read</code>",
		"<td><code>tasks.act</code></td><td>claim and answer human tasks, as their roles and assignee allow</td><td>yes</td>")
	b.sees(t, console.Root+"/me", ann("Reader"), 200, `<span class="chip" data-status="alive">`)
}

// A schedule runs once however often its form is sent, and the page leads to the started run.
func TestScheduleIsRun(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure())
	const run = console.Root + "/schedules/update/run"
	operator := ann("Operator")
	b.sees(t, console.Root+"/schedules", operator, 200, `href="`+run+`?schedule=nightly"`)
	form := b.form(t, run+"?schedule=nightly", operator)
	to := b.post(t, run+"?schedule=nightly", form, operator).Header().Get("Location")
	b.leads(t, run+"?schedule=nightly", form, operator, to)
	b.Deliver()
	target, err := url.Parse(to)
	if err != nil || target.Query().Get("done") != "run" {
		t.Fatalf("to %q, %v", to, err)
	}
	text := b.sees(t, console.Root+"/timeline?correlationId="+url.QueryEscape(target.Query().Get("correlationId")), ann("Reader"), 200)
	if n := strings.Count(text, "<bdi>Run update-"); n != 1 {
		t.Errorf("%d runs", n)
	}
	b.sees(t, to, operator, 200, "It was sent.")
	b.acted(t, ann(""), "run Done")
	b.refuses(t, run+"?schedule=nightly", form, ann("Reader"), http.StatusForbidden, "schedules.run")
	b.refuses(t, run+"?schedule=weekly", form, operator, http.StatusNotFound)
}

// An instance is drained and resumed, under the caller's name, and once.
func TestInstanceIsDrained(t *testing.T) {
	t.Parallel()
	b := newAsking(t, inAzure())
	operator := ann("Operator")
	if status, text := b.Do(http.MethodPost, "/api/registry", `{"instanceId": "blue-1", "ring": "canary"}`, operator.Sign); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	const blue = console.Root + "/registry/blue-1"
	b.sees(t, console.Root+"/registry", ann("Reader"), 200, blue)
	form := with(b.form(t, blue+"/drain", operator), "forSeconds", "14400", "reason", "the disk is changed")
	b.leads(t, blue+"/drain", form, operator, blue+"?done=drained")
	b.sees(t, blue, operator, 200, ">Drained</span>", "in 3 hours", blue+"/resume")
	b.refuses(t, blue+"/drain", with(form, "forSeconds", "-1"), operator, http.StatusBadRequest, "the disk is changed")
	b.leads(t, blue+"/resume", b.form(t, blue+"/resume", operator), operator, blue+"?done=resumed")
	acts := b.acts(t, ann(""))
	if !slices.Contains(acts, "ann@example.com drain Done") || !slices.Contains(acts, "ann@example.com resume Done") {
		t.Errorf("audit log: %s", acts)
	}
}

// An event is skipped and replayed from its page, once however often the form is sent, under the sender's name.
func TestEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	path := b.publish(t, "acme")
	b.publish(t, "other")
	b.sees(t, console.Root+"/outbox?tenant=acme&status=pending", ann("Reader"), 200, `href="`+path+`"`, "!"+console.Root+"/outbox/other/")
	for _, step := range []struct{ act, status string }{{"retry", "pending"}, {"skip", "skipped"}, {"replay", "pending"}} {
		b.leads(t, path+"/"+step.act, b.form(t, path+"/"+step.act, ann("Operator")), ann("Operator"), path+"?done="+step.act)
		b.sees(t, path, ann("Reader"), 200, ">"+step.status+"</span>", "9007199254740993")
	}
	acts := b.acts(t, ann(""))
	for _, act := range []string{"skip", "replay"} {
		if n := len(slices.DeleteFunc(slices.Clone(acts), func(a string) bool { return a != "ann@example.com "+act+" Done" })); n != 1 {
			t.Errorf("%s is %d times in the audit log: %q", act, n, acts)
		}
	}
}

// The page of the outbox has the backlog of the caller's tenants, and the circuits of other nodes.
func TestBacklogAndCircuits(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.publish(t, "acme")
	b.publish(t, accesstest.ID("blue"))
	other, err := nodes.New(nodes.Config{Tables: b.Tables, Queues: b.Queues, Queue: orchestrator.DefaultScheduleQueue, Name: "other-node",
		TakeOver: func(context.Context, nodes.Lost, func(int)) error { return errors.New("nobody is lost") }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	now := time.Now()
	other.Say(outbox.EncodeCircuits([]outbox.OpenCircuit{{Destination: "crm-held-back", Since: now, Until: now.Add(time.Minute), Failures: 5, Reason: "status 503"}}))
	if err := other.Start(t.Context()); err != nil { // writes its row
		t.Fatal(err)
	}
	b.sees(t, console.Root+"/outbox", ann("Reader"), 200, ">crm-held-back<", ">other-node-", "status 503", `tenant=acme">`, "<bdi>log</bdi>")
	b.sees(t, console.Root+"/outbox?tenant=acme&status=dead", ann("Reader"), 200, "<bdi>log</bdi>", "!"+accesstest.ID("blue"))
	for _, target := range []string{"/outbox", "/outbox?tenant=acme"} {
		b.sees(t, console.Root+target, mallory(), 200, "!<bdi>log</bdi>", "!crm-held-back", "!"+accesstest.ID("blue"))
	}
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

const orders = pollerList + "/orders"

// The pages show the conditions of pollers and their lag. A poller is reset once however often the form is sent, and
// the rows after the position are delivered again.
func TestPollerIsReset(t *testing.T) {
	t.Parallel()
	b := newBench(t, polled(t, inAzure()), "keep")
	admin := ann("Administrator")
	if text := b.sees(t, pollerList, ann("Reader"), 200); strings.Count(text, ">New</span>") != 2 {
		t.Error("before the first tick, not both are new")
	}
	if !b.Tick("poller-orders-timer", time.Now()) || b.Tick("poller-lost-timer", time.Now()) {
		t.Fatal("orders does not run, or lost does")
	}
	b.Deliver()
	b.sees(t, pollerList, ann("Reader"), 200, ">Idle</span>", ">Failing</span>", "LOST_DSN is not set")
	b.sees(t, orders+"?lag=now", ann("Reader"), 200, "caught up", "End of the source</dt><dd><bdi>3</bdi>", "the engine <bdi>keep</bdi>", "the setting <bdi>ORDERS_DSN</bdi>", "!file:")
	before := b.state(t).Lease.Token
	form := b.form(t, orders+"/reset-to-cursor", admin)
	b.refuses(t, orders+"/reset-to-cursor", form, admin, http.StatusBadRequest, "Fill in: ")
	b.refuses(t, orders+"/reset-to-cursor", with(form, "value", "one"), admin, http.StatusBadRequest, "t is no number", `value="one"`)
	b.leads(t, orders+"/reset-to-cursor", with(form, "value", "1"), admin, orders+"?done=reset-to-cursor")
	if d := b.state(t); d.Cursor().Value != "1" || d.Lease.Token != before+1 {
		t.Errorf("at %s with token %d, before %d", d.Cursor(), d.Lease.Token, before)
	}
	b.sees(t, orders+"?done=reset-to-cursor", ann("Reader"), 200, "goes on behind the place")
	if !b.Tick("poller-orders-timer", time.Now()) || b.state(t).Checkpoint.Metadata.RowCount != 2 {
		t.Errorf("rows behind the place: %+v", b.state(t).Checkpoint)
	}
	acts := b.acts(t, ann(""))
	if !slices.Contains(acts, "ann@example.com reset-to-cursor to 1 Done") || !slices.Contains(acts, "ann@example.com reset-to-cursor to one Failed") {
		t.Errorf("audit log: %q", acts)
	}
}

// Under a lease a change is refused with the form kept; with force the owner is fenced. A retired poller is
// reactivated.
func TestPollerIsRetiredByForce(t *testing.T) {
	t.Parallel()
	b := newBench(t, polled(t, inAzure()), "keep")
	admin := ann("Administrator")
	if !b.Tick("poller-orders-timer", time.Now()) {
		t.Fatal("it does not run")
	}
	b.hold(t)
	form := b.form(t, orders+"/retire", admin)
	b.refuses(t, orders+"/retire", form, admin, http.StatusConflict, "node-7/ab has the lease", form.Get("key"))
	b.refuses(t, orders+"/retire", with(form, "force", "yes"), admin, http.StatusSeeOther)
	if d := b.state(t); !d.Retired || d.Lease.Owner != "" {
		t.Errorf("%+v", d)
	}
	b.sees(t, orders, admin, 200, ">Retired</span>", "It is retired.")
	checkpoint := b.form(t, orders+"/reset-to-checkpoint", admin)
	b.refuses(t, orders+"/reset-to-checkpoint", with(checkpoint, "checkpoint", "{"), admin, http.StatusBadRequest, "no JSON")
	b.refuses(t, orders+"/reset-to-checkpoint", with(checkpoint, "checkpoint", `{"cursor": {"kind": "integer", "value": 2}}`), admin, http.StatusSeeOther)
	if d := b.state(t); d.Retired || d.Cursor().Value != "2" {
		t.Errorf("brought back: %+v", d)
	}
	clone := b.form(t, orders+"/clone-checkpoint", admin)
	b.Tick("poller-lost-timer", time.Now()) // which has only failed so far
	b.refuses(t, orders+"/clone-checkpoint", with(clone, "to", "lost"), admin, http.StatusSeeOther)
	for _, act := range []string{"accept-fingerprint", "break-lease", "reset-to-beginning"} {
		b.refuses(t, orders+"/"+act, b.form(t, orders+"/"+act, admin), admin, http.StatusSeeOther)
	}
	if d := b.state(t); d.Checkpoint != nil {
		t.Errorf("%+v", d.Checkpoint)
	}
}

// most is the maximum number of storage transactions of the home page, and mostAgain that of a reload.
const most, mostAgain = 100, 25

// The home page of an app with many results and dead letters takes as many transactions as that of one with a few
// hundred, and few on a reload.
func TestHomeIsCheap(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	count := func(ctx context.Context, _ faults.Call, next func(context.Context) error) error {
		calls.Add(1)
		return next(ctx)
	}
	b := newBench(t, inAzure())
	look := func() (n [2]int64) {
		b.Restart(inAzure(), func(c *handler.Config) {
			c.Tables, c.Queues, c.Blobs = faults.Tables(c.Tables, count), faults.Queues(c.Queues, count), faults.Blobs(c.Blobs, count)
		})
		for i := range n {
			calls.Store(0)
			b.sees(t, console.Root, ann("Administrator"), 200, "!could not be asked for", "!You need the permission")
			n[i] = calls.Load()
		}
		return n
	}
	history := engine.NewHistory(b.Tables, "")
	fill := func(from, to int) {
		for n := from; n < to; n++ {
			b.bury(t, fmt.Sprint("work-", n), "", fmt.Sprint("failure ", n%7))
			if err := history.Record(t.Context(), engine.Entry{Engine: "store", Operation: "keep", CorrelationID: fmt.Sprint("run-", n), Status: engine.StatusSucceeded, RunStatus: engine.StatusSucceeded,
				CreatedAtUtc: time.Now().Add(-time.Duration(n) * time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(0, 320)
	few := look()
	fill(320, 640)
	if many := look(); few != many || many[0] > most || many[1] > mostAgain {
		t.Errorf("transactions, and when loaded again: %d with 320 results and dead letters, %d with 640; at most %d and %d", few, many, most, mostAgain)
	}
}

// The first page of an app without runs shows the message to send, until a run has finished.
func TestHomeOfANewApp(t *testing.T) {
	t.Parallel()
	b := newBench(t, inAzure())
	b.mended.Store(true)
	text := b.sees(t, console.Root, ann("Reader"), 200, "!could not be asked for", "roundhouse send store --correlation-id first", "store-queue")
	if !strings.Contains(text, ">Healthy</span>") && !strings.Contains(text, ">Degraded</span>") {
		t.Error("it does not say how the app is")
	}
	b.begin("store", "first", "", "7")
	b.sees(t, console.Root, ann("Reader"), 200, "!could not be asked for", "!Nothing has run here yet", "Results by hour: 1<")
}
