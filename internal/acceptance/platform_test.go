package acceptance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/engine/schedule"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/logs/logstest"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/internal/postgres/postgrestest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

var databases postgrestest.Shared

func TestMain(m *testing.M) {
	testenv.Main(m, databases.Close, pebble.IgnoreLeak(), goleak.Cleanup(staged.end))
}

// platform is a running host with the real handler. Queues and tables have fixed names, so a storage account has one
// platform, and its tests share it in sequence.
type platform struct {
	account azure.Account
	key     string // of the functions
	queues  *azure.Queues
	tables  *azure.Tables
	vault   kept
	proxy   *proxy
	host    *localhost.Host
	log     string // the handler's log file
	// published are the events of the successful rotations.
	published []string

	mu          sync.Mutex
	invocations []localhost.Invocation
}

// setup configures the start of a platform.
type setup struct {
	account azure.Account
	// context is the deployment profile; publisher when empty.
	context string
	// pollers are the definitions of pollers; may be empty.
	pollers string
	// env is added to the environment of the handler, as NAME=value.
	env []string
	// vault is the handler's store of secrets; nil is the one of a developer's machine.
	vault kept
	// hostLog is the log of the host; nil keeps the default.
	hostLog *slog.Logger
	// visibility is the host's lease of a message; 0 is its default.
	visibility time.Duration
	// hostQueues returns the host's queue store, given those of the account; nil keeps those.
	hostQueues func(*azure.Queues) queues.Store
}

func start(t *testing.T) *platform {
	t.Helper()
	return startWith(t, setup{account: ownStorage(t)})
}

// startWith starts a platform.
func startWith(t *testing.T, s setup) *platform {
	t.Helper()
	s.context = cmp.Or(s.context, "publisher")
	dist := stageWith(t, s.context, s.pollers)
	reschedule(t, dist, "outbox-sweep-timer", "* * * * * *")
	reschedule(t, dist, "schedules-timer", newYear)
	p := &platform{account: s.account, key: rand.Text(), vault: s.vault}
	var err1, err2 error
	p.queues, err1 = azure.NewQueues(p.account)
	p.tables, err2 = azure.NewTables(p.account)
	testenv.OK(t, errors.Join(err1, err2))
	if p.vault == nil {
		p.vault = secrets.NewDevelopment(p.tables)
	}
	p.proxy = newProxy(t, p.account)
	log := newLog(t)
	p.log = log.Name()
	var hostQueues queues.Store = p.queues
	if s.hostQueues != nil {
		hostQueues = s.hostQueues(p.queues)
	}
	var err error
	p.host, err = localhost.New(localhost.Config{
		ScriptRoot: dist, Queues: hostQueues, CrashWindow: 1, Output: log, OnInvocation: p.observe, FunctionKey: p.key, Log: s.hostLog, Visibility: s.visibility,
		Env: append([]string{
			"ROUNDHOUSE_CONTEXT=" + s.context, "ROUNDHOUSE_POLLERS=" + s.pollers, "ROUNDHOUSE_SCHEDULES=" + yearly(t, s.context),
			"AzureWebJobsStorage=" + p.proxy.account.ConnectionString(),
			// A failed message is redelivered immediately, and an empty queue is polled often.
			"AzureFunctionsJobHost__extensions__queues__visibilityTimeout=00:00:00",
			"AzureFunctionsJobHost__extensions__queues__maxPollingInterval=00:00:00.500",
			// Claims of a dead handler expire soon.
			"ROUNDHOUSE_HMAC_GRACE=3s", "ROUNDHOUSE_HMAC_PROPAGATION=1s",
			"ROUNDHOUSE_OUTBOX_POLL_INTERVAL_SECONDS=1", "ROUNDHOUSE_OUTBOX_DELIVERY_TIMEOUT=1s", "ROUNDHOUSE_OUTBOX_CLAIM_DURATION=2s",
		}, s.env...),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.proxy.kill = p.host.KillHandler
	runHost(t, p.host)
	return p
}

// newLog makes a file for a handler's log, and checks at the end that its lines are those that the documents list. A
// failed test shows its end.
func newLog(t *testing.T) *os.File {
	t.Helper()
	log := testenv.Must(os.Create(filepath.Join(t.TempDir(), "handler.log")))(t)
	t.Cleanup(func() {
		log.Close()
		text, err := os.ReadFile(log.Name())
		if err != nil {
			t.Error(err)
		}
		whole := slices.DeleteFunc(bytes.SplitAfter(text, []byte("\n")), func(line []byte) bool { return !json.Valid(line) }) // other lines are of a killed process, or not of its log
		if n := logstest.Check(t, bytes.Join(whole, nil)); n == 0 {
			t.Error("the handler has logged nothing")
		}
		if t.Failed() {
			t.Logf("the handler's log:\n%s", text[max(0, len(text)-8000):])
		}
	})
	return log
}

// runHost runs a host until the test ends, and waits until the app has prepared its storage.
func runHost(t *testing.T, host *localhost.Host) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("host: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	testenv.OK(t, host.WaitAnswer(testenv.Context(t), "/api/health/ready"))
}

// newYear is a schedule that does not fire during a test: two manual runs are for the same slot.
const newYear = "0 0 0 1 1 *"

// reschedule gives another schedule to the staged timers whose names match.
func reschedule(t *testing.T, dist, timers, to string) {
	t.Helper()
	schedule := regexp.MustCompile(`("schedule": )"[^"]*"`)
	paths := testenv.Must(filepath.Glob(filepath.Join(dist, timers, "function.json")))(t)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || !schedule.Match(text) {
			t.Fatalf("%s: %v\n%s", path, err, text)
		}
		testenv.OK(t, os.WriteFile(path, schedule.ReplaceAll(text, []byte(`$1"`+to+`"`)), 0o600))
	}
}

// outbox returns the outbox over the platform's storage.
func (p *platform) outbox(t *testing.T) *outbox.Outbox {
	t.Helper()
	store := testenv.Must(azure.NewBlobs(p.account))(t)
	o := testenv.Must(outbox.New(outbox.Config{Tables: p.tables, Queues: p.queues, Blobs: store}))(t)
	return o
}

func (p *platform) observe(i localhost.Invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.invocations = append(p.invocations, i)
}

// seen counts the matching invocations.
func (p *platform) seen(match func(localhost.Invocation) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, i := range p.invocations {
		if match(i) {
			n++
		}
	}
	return n
}

func (p *platform) send(t *testing.T, queue, body string) string {
	t.Helper()
	id := testenv.Must(p.queues.Send(t.Context(), queue, []byte(body), 0))(t)
	return id
}

// drained waits until a queue is empty.
func (p *platform) drained(t *testing.T, queue string) {
	t.Helper()
	testenv.Until(t, queue+" is empty", func() bool { return p.empty(t, queue) })
}

type item map[string]any

// ask sends a request with the key of the functions, unless the header has another key.
func (p *platform) ask(t *testing.T, method, path string, header http.Header, body []byte) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(testenv.Context(t), method, p.host.URL()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("x-functions-key", p.key)
	maps.Copy(req.Header, header)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// get reads one document of the API.
func (p *platform) get(t *testing.T, path string) item {
	t.Helper()
	var answer struct{ Data item }
	var status int
	var body []byte
	// The host's own answer while the handler dies has no body; a handler that has just started may be unavailable.
	testenv.Until(t, "an answer of the handler", func() bool {
		status, body = p.ask(t, http.MethodGet, path, nil, nil)
		return status != http.StatusServiceUnavailable && (status != http.StatusInternalServerError || len(body) > 0)
	})
	if status != http.StatusOK || json.Unmarshal(body, &answer) != nil {
		t.Fatalf("GET %s: %d %s", path, status, body)
	}
	return answer.Data
}

// fire lets a timer function run now, and waits until it has.
func (p *platform) fire(t *testing.T, function string) {
	t.Helper()
	ran := func(i localhost.Invocation) bool { return i.Function == function && i.Err == nil }
	before := p.seen(ran)
	if status, body := p.ask(t, http.MethodPost, "/admin/functions/"+function, nil, []byte(`{"input":""}`)); status != http.StatusAccepted {
		t.Fatalf("%s was answered with %d %s", function, status, body)
	}
	testenv.Until(t, "a run of "+function, func() bool { return p.seen(ran) > before })
}

// yearly returns the schedules of a profile: once a year where a test lets the timer send them, and never where it runs
// them by hand.
func yearly(t *testing.T, context string) string {
	t.Helper()
	text, err := json.Marshal(map[string]schedule.Setting{
		"publisher":   {"hmac": {Cron: newYear}, "spn": {Cron: schedule.Off}, "tls": {Cron: schedule.Off}, "update-publisher": {Cron: schedule.Off}},
		"managed-app": {"health": {Cron: newYear}},
	}[context])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// owe makes a schedule target due this year, but not sent. The handler finds it at its first check.
func (p *platform) owe(t *testing.T, engine, name, item string) {
	t.Helper()
	err := p.tables.Apply(t.Context(), schedule.Table, tables.Insert(tables.Entity{
		Key:        tables.Key{Partition: schedule.Table, Row: engine + "~" + name + "~" + tables.EscapeKey(item)},
		Properties: map[string]any{"Engine": engine, "Schedule": name, "Item": item, "Cron": newYear, "AfterUtc": time.Now().AddDate(-2, 0, 0)}}))
	if err != nil {
		t.Fatal(err)
	}
}

// runByHand runs a schedule by hand twice, as an operator does after a lost answer.
func (p *platform) runByHand(t *testing.T, engine, body string) {
	t.Helper()
	header := http.Header{"Idempotency-Key": {uuid.NewString()}}
	for range 2 {
		if status, answer := p.ask(t, http.MethodPost, "/api/schedules/"+engine+"/run", header, []byte(body)); status != http.StatusAccepted {
			t.Fatalf("a run of %s was answered with %d %s", engine, status, answer)
		}
	}
}

// list reads the items of a correlation id; several ids are alternatives.
func (p *platform) list(t *testing.T, path string, query url.Values) []item {
	t.Helper()
	var items []item
	for _, v := range p.get(t, path+"?"+query.Encode())["items"].([]any) {
		items = append(items, v.(map[string]any))
	}
	return items
}

// succeeded waits for a rotation of the hmac engine, and checks the traces of exactly one run: each operation once, one
// usable key, its event, no dead letter and an empty queue.
func (p *platform) succeeded(t *testing.T, correlationID, instance string) {
	t.Helper()
	p.checkRotated(t, instance, p.ran(t, at(hmac.Engine, hmac.Queue), correlationID, rotated(instance)...))
}

// rotated returns the history of a rotation.
func rotated(instance string) []string {
	return []string{"rotate of " + instance + " Succeeded", "notify of " + instance + " Succeeded Succeeded"}
}

// checkRotated checks that an event announced the new key of an instance, and that only this key is usable.
func (p *platform) checkRotated(t *testing.T, instance string, entries []engine.Entry) {
	t.Helper()
	if len(entries) == 2 {
		p.checkEvent(t, entries[1])
	}
	versions := testenv.Must(p.vault.Versions(t.Context(), secrets.Name(hmac.Engine, instance)))(t)
	enabled := 0
	for _, v := range versions {
		if v.Enabled {
			enabled++
		}
	}
	if enabled != 1 {
		t.Errorf("%d usable versions of the key, of %d", enabled, len(versions))
	}
}

// checkEvent checks that the event of a notify operation names the key of the operation.
func (p *platform) checkEvent(t *testing.T, notify engine.Entry) {
	t.Helper()
	var out hmac.NotifyOutput
	if err := json.Unmarshal(notify.Output, &out); err != nil || out.EventID == "" {
		t.Fatalf("output of notify: %s, %v", notify.Output, err)
	}
	event := testenv.Must(outbox.NewAdmin(p.outbox(t)).Get(t.Context(), engine.PublisherInstance, out.EventID))(t)
	want := fmt.Sprintf(`"version":%q,"activeAtUtc":`, out.Version)
	if event.EventType != hmac.EventRotated || event.CorrelationID != notify.CorrelationID || !strings.Contains(string(event.Payload), want) {
		t.Errorf("event %+v with payload %s", event, event.Payload)
	}
	p.published = append(p.published, out.EventID)
}

// empty reports whether a queue has no message except the handler's sign of life.
func (p *platform) empty(t *testing.T, queue string) bool {
	t.Helper()
	most := 0
	if queue == scheduleQueue {
		most = 1
	}
	n, err := p.queues.Length(t.Context(), queue)
	return err == nil && n <= most
}
