package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/alerts"
	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/engine/spn"
	enginetls "github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/updatepublisher"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
)

// engineLoad is a load of messages of an engine, each of which finds the same state.
type engineLoad struct {
	name, goal string
	engine     string // name when ""
	queue      string
	lines      string // the shown lines, as in kinds
	n          int    // messages; loaded when 0
	again      bool   // each repeats earlier work, in a process that has just done it
	alone      bool   // one after the other
	// before prepares the state for the message with a number, body makes it from its id instead of a message with an
	// input, and after completes the wait of an orchestration; nil for none. The cost of before is not counted.
	before func(ctx context.Context, d *countedApp, i int, id string) error
	input  func(i int) any
	body   func(i int, id string) ([]byte, error)
	after  func(ctx context.Context, d *countedApp, i int, id string) error
}

// The lines that most messages have.
const (
	runLines      = "orchestrations/get orchestrations/query orchestrations/apply history/query history/apply queue/receive queue/delete"
	outboxLines   = "outbox/get outbox/query outbox/apply outbox/wake "
	keyLines      = "keySlots/query keySlots/apply "
	registryLines = "registry/get registry/apply "
	signalLines   = "signals/send signals/delete "
)

// engineLoads returns the counted messages.
func engineLoads() []engineLoad {
	return []engineLoad{
		{name: hmac.Engine, goal: "goal 11", queue: hmac.Queue, lines: outboxLines + keyLines + runLines},
		{name: plainEngine, goal: "an engine with one operation", queue: plainEngine + "-queue", lines: outboxLines + keyLines + runLines},
		{name: spn.Engine, goal: "a first rotation, of an application without consumers", queue: spn.Queue, lines: outboxLines + runLines, n: few,
			before: func(_ context.Context, d *countedApp, i int, _ string) error {
				d.graph.AddApplication(applicationID(i))
				return nil
			},
			input: func(i int) any { return map[string]string{"applicationId": applicationID(i)} }},
		{name: enginetls.Engine, goal: "a new certificate that no target serves, of an authority in process that stands for ACME", queue: enginetls.Queue, lines: "tlsOrders/get tlsOrders/apply " + runLines, n: few,
			input: func(i int) any { return map[string]string{"domain": fmt.Sprintf("host-%d.example.com", i)} }},
		{name: "tls-look", goal: "a certificate that need not be renewed", engine: enginetls.Engine, queue: enginetls.Queue, lines: "tlsOrders/get " + runLines, n: few, again: true,
			input: func(i int) any { return map[string]string{"domain": fmt.Sprintf("host-%d.example.com", i)} }},
		{name: provisioning.Engine, goal: "a purchase, with the answer of its instance over the API", queue: provisioning.Queue, lines: registryLines + outboxLines + signalLines + runLines, n: few,
			before: offered, body: purchase, after: bootstrapped},
		{name: update.Engine, goal: "of one component", queue: update.Queue, lines: registryLines + outboxLines + runLines, n: few,
			before: func(ctx context.Context, d *countedApp, i int, _ string) error {
				d.updates.Install(instanceID(i), "web", "1.0")
				return d.register(ctx, instanceID(i), map[string]any{"version": "1.0"})
			},
			input: func(int) any {
				return map[string]any{"version": "2.0", "components": []map[string]string{{"name": "web", "version": "2.0"}}}
			}},
		{name: "updatepublisher", goal: "an evaluation that tells the one instance that there is", engine: updatepublisher.Engine, queue: updatepublisher.Queue, lines: "registry/query " + registryLines + outboxLines + runLines, n: few, alone: true,
			before: func(ctx context.Context, d *countedApp, _ int, _ string) error {
				return d.register(ctx, "instance", map[string]any{"ring": "stable", "version": "1.0"})
			},
			body: func(_ int, id string) ([]byte, error) { return json.Marshal(engine.Message{CorrelationID: id}) }},
		{name: alerts.Engine, goal: "an alert without a rule of its own", queue: alerts.Queue, lines: outboxLines + runLines, n: few,
			body: func(_ int, id string) ([]byte, error) {
				return fmt.Appendf(nil, `{"schemaId":"azureMonitorCommonAlertSchema","data":{"essentials":{"alertId":"/alerts/%s","alertRule":"rule","severity":"Sev3",`+
					`"monitorCondition":"Fired","firedDateTime":"2026-11-21T10:00:00Z"}}}`, id), nil
			}},
		{name: health.Engine, goal: "the second check of an instance with one component, which is well", queue: health.Queue, lines: registryLines + outboxLines + runLines, n: few, again: true,
			before: func(ctx context.Context, d *countedApp, i int, _ string) error {
				d.patients.Set(instanceID(i), "web", healthtest.Pass())
				if _, err := d.registry.Get(ctx, instanceID(i)); err == nil {
					return nil
				}
				return d.register(ctx, instanceID(i), nil)
			}},
	}
}

// few is the number of messages of a load for a slow engine.
const few = 64

func instanceID(i int) string    { return fmt.Sprintf("instance-%d", i) }
func applicationID(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

// offered adds a purchase to the marketplace.
func offered(_ context.Context, d *countedApp, _ int, id string) error {
	d.market.PutSubscription(marketplacefake.Subscription{ID: id, PlanID: "gold", Status: "PendingFulfillmentStart", TenantID: countedTenant})
	d.market.PutOperation(marketplacefake.Operation{ID: id, SubscriptionID: id, Action: "Subscribe", PlanID: "gold", Status: "InProgress", At: time.Now()})
	return nil
}

// purchase returns the marketplace's webhook for a purchase.
func purchase(_ int, id string) ([]byte, error) {
	return json.Marshal(map[string]string{"id": id, "activityId": id, "subscriptionId": id, "publisherId": countedTenant, "offerId": "platform", "planId": "gold",
		"action": "Subscribe", "timeStamp": time.Now().UTC().Format(time.RFC3339), "status": "InProgress"})
}

// bootstrapped raises the answer of a started instance.
func bootstrapped(ctx context.Context, d *countedApp, _ int, id string) error {
	return d.do(ctx, "/api/orchestrations/"+provisioning.Engine+"-"+engine.DeriveCorrelationID("marketplace-operation", id)+"/events/"+provisioning.EventBootstrapped, []byte(`{"status":"Succeeded","version":"1.0"}`), http.StatusAccepted)
}

// part is one line of a count: the requests whose names begin with a prefix.
type part struct{ name, prefix string }

// kinds returns the last words of lines, with the counted operations on a table, queue or container.
func kinds() map[string]string {
	return map[string]string{"get": "tables/%s/Get", "query": "tables/%s/Query", "scan": "tables/%s/Scan", "apply": "tables/%s/Apply",
		"send": "queues/%s/Send", "receive": "queues/%s/Receive", "delete": "queues/%s/Delete", "wake": "queues/%s/", "put": "blobs/%s/Put"}
}

// parts returns lines, by table or queue and by kind. queue is the queue of the line of that name.
func parts(lines, queue string) (all []part) {
	names := map[string]string{"history": engine.DefaultHistoryTable, "dlq": engine.DefaultDeadLetterTable, "outbox": outbox.DefaultTable, "queue": queue, "keySlots": hmac.SlotsTable,
		"signals": "orchestration-signals"}
	for line := range strings.FieldsSeq(lines) {
		name, kind, _ := strings.Cut(line, "/")
		if kind == "wake" {
			name = outbox.DefaultQueue
		}
		if real, ok := names[name]; ok {
			name = real
		}
		all = append(all, part{line, fmt.Sprintf(kinds()[kind], name)})
	}
	return all
}

// vaults are the tables of the development vault, which replaces another service.
var vaults = []string{"tables/" + secrets.DevelopmentTable + "/", "tables/" + certificates.DevelopmentTable + "/"}

// counted returns a scenario that counts requests, by part: of one message, or of one call.
func counted(name, goal, lines, queue string, count func(ctx context.Context, d *countedApp) (times int, err error)) scenario {
	shown := parts(lines, queue)
	var metrics []metric
	for _, p := range shown {
		metrics = append(metrics, metric{name + "/" + p.name, "requests", ""})
	}
	metrics = append(metrics, metric{name + "/rest", "requests", "node, list of orchestrations, queues of signals and what else there is"},
		metric{name + "/vault", "requests", "of the development vault; not in the total"}, metric{name + "/total", "requests", goal})
	return scenario{metrics, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		d, err := newCountedApp(ctx)
		if err != nil {
			return nil, err
		}
		defer d.handler.Close()
		n, err := count(ctx, d)
		if err != nil {
			return nil, err
		}
		return d.lines(shown, n), nil
	}}
}

// lines returns the values of parts, of the rest, of the vault and of the total, for each of n.
func (d *countedApp) lines(all []part, n int) (values []float64) {
	vault := d.sum(vaults...)
	total := d.sum("") - vault
	rest := total
	for _, p := range all {
		sum := d.sum(p.prefix)
		rest -= sum
		values = append(values, float64(sum)/float64(n))
	}
	return append(values, float64(rest)/float64(n), float64(vault)/float64(n), float64(total)/float64(n))
}

// scenario counts the cost of each message, by part. One-time costs of a process are not counted.
func (l engineLoad) scenario() scenario {
	if l.engine == "" {
		l.engine = l.name
	}
	if l.n == 0 {
		l.n = loaded
	}
	return counted("requests/"+l.name, l.goal, l.lines, l.queue, func(ctx context.Context, d *countedApp) (int, error) {
		warm, from := hostBatch, hostBatch
		if l.again {
			warm, from = l.n, 0
		}
		if err := l.run(ctx, d, "warm", 0, warm); err != nil {
			return 0, err
		}
		d.begin()
		return l.n, l.run(ctx, d, "counted", from, l.n)
	})
}

// run handles n messages, and completes their waits. Sending them is not counted.
func (l engineLoad) run(ctx context.Context, d *countedApp, phase string, from, n int) error {
	batch := n
	if l.alone {
		batch = 1
	}
	for first := from; first < from+n; first += batch {
		for i := first; i < first+batch; i++ {
			if err := l.send(ctx, d, phase, i); err != nil {
				return err
			}
		}
		if err := d.host(ctx, int64(batch)); err != nil {
			return err
		}
	}
	if l.after == nil {
		return nil
	}
	for i := from; i < from+n; i++ {
		if err := l.after(ctx, d, i, messageID(l.name, phase, i)); err != nil {
			return err
		}
	}
	return d.atRest(ctx)
}

// messageID returns the correlation id of a message.
func messageID(name, phase string, i int) string {
	return engine.DeriveCorrelationID("bench", name, phase, fmt.Sprint(i))
}

func (l engineLoad) send(ctx context.Context, d *countedApp, phase string, i int) error {
	id := messageID(l.name, phase, i)
	if l.before != nil {
		if err := l.before(ctx, d, i, id); err != nil {
			return err
		}
	}
	body, err := l.message(i, id)
	if err == nil {
		_, err = d.polled.Send(ctx, l.queue, body, 0)
	}
	return err
}

func (l engineLoad) message(i int, id string) ([]byte, error) {
	if l.body != nil {
		return l.body(i, id)
	}
	m := engine.Message{CorrelationID: id, Engine: l.engine, InstanceID: instanceID(i), TenantID: countedTenant}
	if l.input != nil {
		var err error
		if m.Input, err = json.Marshal(l.input(i)); err != nil {
			return nil, err
		}
	}
	return json.Marshal(m)
}

// loneRequests counts the cost of one event from its addition until it is settled, in a process that knows its tenant
// and has added nothing for it for an hour.
func loneRequests() scenario {
	m := metric{"requests/outbox/lone", "requests", "goal 4"}
	return scenario{[]metric{m}, func(ctx context.Context, _ time.Duration) ([]float64, error) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		c, count := memoryOutbox(), &requestCount{counts: map[string]int{}}
		memory := queues.NewMemory()
		memory.Now, c.Now = now, now
		c.Tables, c.Queues, c.Blobs = faults.Tables(c.Tables, count.intercept), faults.Queues(memory, count.intercept), faults.Blobs(c.Blobs, count.intercept)
		room, err := newMailroom(ctx, c)
		if err != nil {
			return nil, err
		}
		room.writer = room.dispatcher.Writer()
		for range 2 {
			ahead.Add(int64(time.Hour))
			if _, err := room.dispatcher.Sweep(ctx); err != nil { // which closes the tenant
				return nil, err
			}
			count.begin()
			if err := room.add(ctx, "tenant", 1); err != nil {
				return nil, err
			}
			if err := room.dispatcher.Settled(ctx); err != nil {
				return nil, err
			}
			if wakes, err := room.host(ctx, c.Queues); err != nil || wakes > 0 {
				return nil, errors.Join(err, fmt.Errorf("%d messages were left to a wake-up", wakes))
			}
		}
		return []float64{float64(count.sum("") - 1)}, nil // without the check for wake-ups
	}}
}
