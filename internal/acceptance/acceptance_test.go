package acceptance

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
)

const (
	poisonQueue   = hmac.Queue + engine.PoisonSuffix
	signalQueue   = "orchestration-signals"
	scheduleQueue = "orchestration-schedules"
	activityQueue = "orchestration-activities"
	strayEvent    = `{"signalId":"s","workflowInstanceId":"nobody","runtimeProvider":"roundhouse","signalType":"ExternalSignal","payload":{"event":"go"}}`
)

func rotation(correlationID, instance string) string {
	body, err := json.Marshal(engine.Message{CorrelationID: correlationID, Engine: hmac.Engine, Operation: hmac.OperationRotate, InstanceID: instance})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// TestPlatform shares one host and runs its parts in sequence.
func TestPlatform(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	p := start(t)
	t.Run("a message becomes a key and its history", p.testRotation)
	t.Run("the key before is retired after its grace", p.testGrace)
	t.Run("the same message twice", p.testDuplicate)
	t.Run("ids of all kinds", p.testIDs)
	t.Run("messages that end as dead letters", p.testDeadLetters)
	t.Run("the command line", p.testCommandLine)
	t.Run("an activity that always fails", p.testAlwaysFails)
	t.Run("the host gives up", p.testHostGivesUp)
	t.Run("a message that was to wake a run is lost", p.testSweep)
	t.Run("the handler is killed at every step", p.testKill)
	t.Run("it is recorded who starts what, whenever the handler dies", p.testAudit)
	t.Run("many messages, and the handler dies among them", p.testMany)
	t.Run("every event has left", p.testEvents)
	if n := p.seen(func(i localhost.Invocation) bool { return i.Violation() != nil }); n != 0 {
		t.Errorf("%d violations of the host's contract", n)
	}
}

func (p *platform) testRotation(t *testing.T) {
	id := uuid.NewString()
	p.send(t, hmac.Queue, rotation(id, "instance-1"))
	p.succeeded(t, id, "instance-1")
	entries := p.list(t, "/api/history", url.Values{"correlationId": {id}, "operation": {"rotate"}})
	if len(entries) != 1 {
		t.Fatalf("%d entries", len(entries))
	}
	entry := p.get(t, "/api/history/hmac/"+url.PathEscape(entries[0]["rowKey"].(string)))
	output, ok := entry["output"].(map[string]any)
	if !ok || output["secretName"] == "" || len(fmt.Sprint(output["version"])) != 32 {
		t.Errorf("entry %v", entry)
	}
}

// testGrace: the run of a key that replaces another ends when the old key is retired, and records its operations before
// that.
func (p *platform) testGrace(t *testing.T) {
	const instance = "instance-twice"
	older, newer := uuid.NewString(), uuid.NewString()
	p.send(t, hmac.Queue, rotation(older, instance))
	p.succeeded(t, older, instance)
	p.send(t, hmac.Queue, rotation(newer, instance))
	history := engine.NewHistory(p.tables, "")
	var entries []engine.Entry
	last := func() engine.Entry { return entries[len(entries)-1] }
	testenv.Until(t, "the operations of "+newer, func() bool {
		var err error
		entries, err = history.Run(t.Context(), hmac.Engine, newer)
		return err == nil && len(entries) == 2
	})
	var told hmac.NotifyOutput
	if err := json.Unmarshal(last().Output, &told); err != nil || told.PreviousVersion == "" || told.GraceEndsAtUtc.Sub(told.ActiveAtUtc) != 2*time.Second {
		t.Errorf("output of %s: %s, %v", last().Operation, last().Output, err)
	}
	testenv.Until(t, "the end of "+newer, func() bool {
		var err error
		entries, err = history.Run(t.Context(), hmac.Engine, newer)
		return err == nil && last().RunStatus != ""
	})
	if now := time.Now(); now.Before(told.GraceEndsAtUtc) {
		t.Errorf("it has ended at %v, before the grace did: %v", now, told.GraceEndsAtUtc)
	}
	p.succeeded(t, newer, instance)
}

func (p *platform) testDuplicate(t *testing.T) {
	id := uuid.NewString()
	p.send(t, hmac.Queue, rotation(id, "instance-2"))
	p.send(t, hmac.Queue, rotation(id, "instance-2"))
	p.succeeded(t, id, "instance-2")
	p.send(t, hmac.Queue, rotation(id, "instance-2"))
	p.succeeded(t, id, "instance-2")
	p.allWell(t, id, 3)
}

func (p *platform) testIDs(t *testing.T) {
	for _, id := range []string{`a/b\c#d?e`, "日本-ü-🚂", "'%2F=~", strings.Repeat("#", 128)} {
		p.send(t, hmac.Queue, rotation(id, "/subscriptions/"+id))
		p.succeeded(t, id, "/subscriptions/"+id)
	}
}

func (p *platform) testDeadLetters(t *testing.T) {
	tests := map[string]struct {
		body  string
		raw   bool   // the text, as a sender without encoding puts it into the queue
		queue string // the target queue
		from  string // the queue in the dead letter; the engine's unless set
		want  string // part of the error
		count float64
	}{
		"not JSON":                  {body: "this is not JSON", want: "not a JSON object", count: 1},
		"not JSON, not encoded":     {body: "this is not JSON either", raw: true, want: "not a JSON object", count: 1},
		"unknown engine":            {body: `{"engine":"roundabout","correlationId":"x1"}`, want: `"roundabout"`, count: 1},
		"64 KiB":                    {body: `{"input":"` + strings.Repeat("x", 48<<10-12) + `"}`, want: "48128 are allowed", count: 1},
		"unknown operation":         {body: `{"engine":"hmac","operation":"erase","correlationId":"x2","instanceId":"i"}`, want: `unknown operation "erase"`, count: 1},
		"malformed input":           {body: `{"engine":"hmac","correlationId":"x3","instanceId":"i","input":{"slott":1}}`, want: `unknown field`, count: 1},
		"ids of all kinds":          {body: `{"engine":"no/such\\engine#?","correlationId":"x/4\\#?ü","instanceId":"/i\\#?日"}`, want: "no/such", count: 1},
		"moved to the poison queue": {body: `{"engine":"hmac","correlationId":"x5","instanceId":"i"}`, queue: poisonQueue, want: "no attempt could report an error", count: 8},
		"a signal that is none":     {body: `{"signalId":"s"}`, queue: signalQueue, from: signalQueue, want: "not a signal", count: 1},
		"a signal for nobody":       {body: strayEvent, queue: signalQueue + engine.PoisonSuffix, from: signalQueue, want: "no such orchestration", count: 8},
		"a schedule that is none":   {body: `{}`, queue: scheduleQueue, from: scheduleQueue, want: "not a signal", count: 1},
		"a schedule given up":       {body: `[]`, queue: scheduleQueue + engine.PoisonSuffix, from: scheduleQueue, want: "not a signal", count: 8},
		"activities that are none":  {body: `{"execution":1}`, queue: activityQueue, from: activityQueue, want: "not a batch of activities", count: 1},
		"activities given up":       {body: `{"execution":2}`, queue: activityQueue + engine.PoisonSuffix, from: activityQueue, want: "not a batch of activities", count: 8},
	}
	known := len(p.list(t, "/api/dlq", url.Values{"limit": {"100"}}))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			queue := tt.queue
			if queue == "" {
				queue = hmac.Queue
			}
			if tt.raw {
				p.sendRaw(t, queue, tt.body)
			} else {
				p.send(t, queue, tt.body)
			}
			if strings.HasSuffix(queue, engine.PoisonSuffix) {
				p.takePoison(t, queue)
			}
			var items []item
			testenv.Until(t, "dead letter", func() bool {
				items = p.list(t, "/api/dlq", url.Values{"limit": {"100"}})
				return len(items) > known
			})
			p.drained(t, queue)
			items = p.list(t, "/api/dlq", url.Values{"limit": {"100"}})
			if len(items) != known+1 {
				t.Fatalf("%d dead letters for one message", len(items)-known)
			}
			known++
			d := p.get(t, fmt.Sprintf("/api/dlq/%s/%s", items[0]["engine"], url.PathEscape(items[0]["rowKey"].(string))))
			checkDeadLetter(t, d, grave{entrance: at("", cmp.Or(tt.from, hmac.Queue)), body: tt.body, reason: tt.want, count: tt.count})
		})
	}
}

// takePoison triggers the timer that drains a poison queue, which otherwise runs every five minutes.
func (p *platform) takePoison(t *testing.T, queue string) {
	t.Helper()
	testenv.Until(t, queue+" is empty", func() bool { // another sweeper may be running
		p.fire(t, "orchestration-sweep-timer")
		return p.empty(t, queue)
	})
}

// sendRaw puts an unencoded text into a queue, as some tools do.
func (p *platform) sendRaw(t *testing.T, queue, text string) {
	t.Helper()
	// Decode would change a text that is base64.
	if _, err := base64.StdEncoding.DecodeString(text); err == nil {
		t.Fatalf("%q is base64", text)
	}
	testenv.Must(p.queues.SendText(t.Context(), queue, text, 0))(t)
}

func (p *platform) testAlwaysFails(t *testing.T) {
	id := uuid.NewString()
	p.proxy.refuseIf(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/devSecrets") })
	defer p.proxy.refuseIf(nil)
	body := rotation(id, "instance-fails")
	p.send(t, hmac.Queue, body)
	d := p.buried(t, grave{entrance: at(hmac.Engine, hmac.Queue), correlationID: id, body: body, reason: "devSecrets", count: 5})
	failed := p.list(t, "/api/history", url.Values{"correlationId": {id}, "status": {"Failed"}})
	if len(failed) != 4 {
		t.Errorf("%d failed attempts in the history", len(failed))
	}
	// The list is newest first.
	if first, last := parseTime(t, d["firstFailureAtUtc"]), parseTime(t, d["lastFailureAtUtc"]); len(failed) == 4 &&
		(!first.Equal(parseTime(t, failed[3]["createdAtUtc"])) || !last.Equal(parseTime(t, failed[0]["createdAtUtc"]))) {
		t.Errorf("failed from %v to %v, the history says otherwise: %v", first, last, failed)
	}
}

// The history cannot be read, so no attempt can be recorded: the host moves the message to the poison queue itself.
func (p *platform) testHostGivesUp(t *testing.T) {
	id := uuid.NewString()
	p.proxy.refuseIf(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/engineHistory") })
	defer p.proxy.refuseIf(nil)
	body := rotation(id, "instance-poison")
	message := p.send(t, hmac.Queue, body)
	testenv.Until(t, "poisoned", func() bool {
		return p.seen(func(i localhost.Invocation) bool { return i.MessageID == message && i.Outcome == localhost.Poisoned }) > 0
	})
	p.proxy.refuseIf(nil)
	p.takePoison(t, poisonQueue)
	p.buried(t, grave{entrance: at(hmac.Engine, hmac.Queue), correlationID: id, body: body, count: 8})
}

func (p *platform) testKill(t *testing.T) {
	rotate := func(t *testing.T, at int, m moment) (requests int) {
		t.Helper()
		id := uuid.NewString()
		instance := "instance-" + id
		p.proxy.arm(at, m)
		pid := p.host.HandlerPID()
		p.send(t, hmac.Queue, rotation(id, instance))
		p.succeeded(t, id, instance)
		if killed := p.host.HandlerPID() != pid; killed != (at > 0) {
			t.Errorf("the handler was killed: %v", killed)
		}
		return p.proxy.requests()
	}
	steps := rotate(t, 0, "")
	if steps < 8 {
		t.Fatalf("a rotation makes only %d requests: the proxy does not see them", steps)
	}
	for at := 1; at <= steps; at++ {
		for _, m := range []moment{before, after} {
			t.Run(fmt.Sprintf("%s request %d", m, at), func(t *testing.T) { rotate(t, at, m) })
		}
	}
}

// Three deaths cannot use up the four attempts of a message, so every rotation has to succeed, once.
func (p *platform) testMany(t *testing.T) {
	const messages, deaths = 60, 3
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ids := make([]string, messages)
	for i := range ids {
		ids[i] = uuid.NewString()
		p.send(t, hmac.Queue, rotation(ids[i], "instance-"+ids[i]))
	}
	for range deaths {
		pid := p.host.HandlerPID()
		p.proxy.arm(1+random.IntN(80), []moment{before, after}[random.IntN(2)])
		testenv.Until(t, "death", func() bool {
			now := p.host.HandlerPID()
			return now != 0 && now != pid || p.empty(t, hmac.Queue)
		})
	}
	p.proxy.arm(0, "")
	for _, id := range ids {
		p.succeeded(t, id, "instance-"+id)
	}
}

// testEvents: each rotation has its event, despite the deaths.
func (p *platform) testEvents(t *testing.T) {
	admin := outbox.NewAdmin(p.outbox(t))
	pending := func(status outbox.Status) []outbox.Record {
		page := testenv.Must(admin.List(t.Context(), outbox.Filter{Status: status}))(t)
		return page.Records
	}
	testenv.Until(t, "nothing is pending", func() bool { return len(pending(outbox.StatusPending)) == 0 })
	if dead := pending(outbox.StatusDead); len(dead) != 0 {
		t.Errorf("dead events: %v", dead)
	}
	for _, id := range p.published {
		if r, err := admin.Get(t.Context(), engine.PublisherInstance, id); err != nil || r.Status != outbox.StatusProcessed {
			t.Errorf("event %s: %s, %v", id, r.Status, err)
		}
	}
	if len(p.published) < 60 {
		t.Errorf("only %d events", len(p.published))
	}
}

func parseTime(t *testing.T, v any) time.Time {
	t.Helper()
	at := testenv.Must(time.Parse(time.RFC3339Nano, fmt.Sprint(v)))(t)
	return at
}

// shorten makes a document with a large message readable.
func shorten(d item) string {
	text := fmt.Sprint(d)
	return text[:min(len(text), 1000)]
}
