package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/internal/account"
	"github.com/vibedata/roundhouse/internal/azurite/azuritetest"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// patience bounds every wait for something that has to come.
const patience = 60 * time.Second

var storage azuritetest.Shared

func TestMain(m *testing.M) { storage.Main(m) }

// platform is a running host with the real handler. Queues and tables have fixed names, so there is one for the package
// and its tests share it, one after the other.
type platform struct {
	account account.Account
	queues  *queues.Azure
	tables  *tables.Azure
	proxy   *proxy
	host    *localhost.Host
	log     string // the handler's log file
	// published are the events of the rotations that have succeeded.
	published []string

	mu          sync.Mutex
	invocations []localhost.Invocation
}

func start(t *testing.T) *platform {
	t.Helper()
	return startOver(t, storage.Account(t))
}

// startOver starts a platform on a storage account.
func startOver(t *testing.T, account account.Account) *platform {
	t.Helper()
	dist := filepath.Join(t.TempDir(), "dist")
	if out, err := exec.Command("../../scripts/stage", "--local", dist).CombinedOutput(); err != nil {
		t.Fatalf("stage: %v\n%s", err, out)
	}
	everySecond(t, filepath.Join(dist, "outbox-sweep-timer", "function.json"))
	p := &platform{account: account}
	var err1, err2 error
	p.queues, err1 = queues.NewAzure(p.account)
	p.tables, err2 = tables.NewAzure(p.account)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	p.proxy = newProxy(t, p.account)
	log, err := os.Create(filepath.Join(t.TempDir(), "handler.log"))
	if err != nil {
		t.Fatal(err)
	}
	p.log = log.Name()
	p.host, err = localhost.New(localhost.Config{
		ScriptRoot: dist, Queues: p.queues, CrashWindow: 1, Output: log, OnInvocation: p.observe,
		Env: []string{
			"AzureWebJobsStorage=" + p.proxy.account.ConnectionString(),
			// A failed message comes back at once, and an empty queue is looked at often.
			"AzureFunctionsJobHost__extensions__queues__visibilityTimeout=00:00:00",
			"AzureFunctionsJobHost__extensions__queues__maxPollingInterval=00:00:00.100",
			// What a handler that died had claimed is soon another's.
			"ROUNDHOUSE_HMAC_GRACE=3s", "ROUNDHOUSE_HMAC_PROPAGATION=1s",
			"ROUNDHOUSE_OUTBOX_POLL_INTERVAL_SECONDS=1", "ROUNDHOUSE_OUTBOX_DELIVERY_TIMEOUT=1s", "ROUNDHOUSE_OUTBOX_CLAIM_DURATION=2s",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.proxy.kill = p.host.KillHandler
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.host.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("host: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the handler's log:\n%s", text[max(0, len(text)-8000):])
		}
	})
	ready, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := p.host.WaitReady(ready); err != nil {
		t.Fatal(err)
	}
	return p
}

// everySecond lets a staged timer fire each second.
func everySecond(t *testing.T, path string) {
	t.Helper()
	schedule := regexp.MustCompile(`("schedule": )"[^"]*"`)
	text, err := os.ReadFile(path)
	if err != nil || !schedule.Match(text) {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
	if err := os.WriteFile(path, schedule.ReplaceAll(text, []byte(`$1"* * * * * *"`)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// outbox is the outbox as it is in storage.
func (p *platform) outbox(t *testing.T) *outbox.Outbox {
	t.Helper()
	store, err := blobs.NewAzure(p.account)
	if err != nil {
		t.Fatal(err)
	}
	o, err := outbox.New(outbox.Config{Tables: p.tables, Queues: p.queues, Blobs: store})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (p *platform) observe(i localhost.Invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.invocations = append(p.invocations, i)
}

// seen counts the invocations that match.
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
	id, err := p.queues.Send(t.Context(), queue, []byte(body), 0)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// until polls until done says so: what it waits for happens in another process.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// drained waits until a queue is empty.
func (p *platform) drained(t *testing.T, queue string) {
	t.Helper()
	until(t, queue+" is empty", func() bool { return p.empty(t, queue) })
}

type item map[string]any

// get reads one document of the API.
func (p *platform) get(t *testing.T, path string) item {
	t.Helper()
	resp, err := http.Get(p.host.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Data item }
	if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %s", path, resp.Status, body)
	}
	return answer.Data
}

// list reads the items of a correlation id; several ids are any of them.
func (p *platform) list(t *testing.T, path string, query url.Values) []item {
	t.Helper()
	var items []item
	for _, v := range p.get(t, path+"?"+query.Encode())["items"].([]any) {
		items = append(items, v.(map[string]any))
	}
	return items
}

// succeeded waits for the run, and checks that it left what one run leaves: each operation once, one usable key, no
// dead letter and nothing in the queue. It looks past the handler and the proxy.
func (p *platform) succeeded(t *testing.T, correlationID, instance string) {
	t.Helper()
	history := engine.NewHistory(p.tables, "")
	var entries []engine.Entry
	until(t, "history of "+correlationID, func() bool {
		var err error
		entries, err = history.Run(t.Context(), hmac.Engine, correlationID)
		return err == nil && len(entries) > 0 && p.empty(t, hmac.Queue)
	})
	var got []string
	for _, e := range entries {
		got = append(got, strings.TrimSpace(fmt.Sprint(e.Operation, " of ", e.InstanceID, " ", e.Status, " ", e.RunStatus)))
	}
	want := []string{"rotate of " + instance + " Succeeded", "notify of " + instance + " Succeeded Succeeded"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	dead, err := engine.NewDeadLetters(p.tables, "").Pending(t.Context(), hmac.Engine, correlationID)
	if err != nil || len(dead) != 0 {
		t.Errorf("dead letters: %v %v", dead, err)
	}
	if len(entries) == 2 {
		p.checkEvent(t, entries[1])
	}
	versions, err := secrets.NewDevelopment(p.tables).Versions(t.Context(), secrets.Name(hmac.Engine, instance))
	if err != nil {
		t.Fatal(err)
	}
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

// checkEvent looks up the event of a notify operation: it names the key that the operation names.
func (p *platform) checkEvent(t *testing.T, notify engine.Entry) {
	t.Helper()
	var out hmac.NotifyOutput
	if err := json.Unmarshal(notify.Output, &out); err != nil || out.EventID == "" {
		t.Fatalf("output of notify: %s, %v", notify.Output, err)
	}
	event, err := outbox.NewAdmin(p.outbox(t)).Get(t.Context(), engine.PublisherInstance, out.EventID)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`"version":%q,"activeAtUtc":`, out.Version)
	if event.EventType != hmac.EventRotated || event.CorrelationID != notify.CorrelationID || !strings.Contains(string(event.Payload), want) {
		t.Errorf("event %+v with payload %s", event, event.Payload)
	}
	p.published = append(p.published, out.EventID)
}

func (p *platform) empty(t *testing.T, queue string) bool {
	t.Helper()
	n, err := p.queues.Length(t.Context(), queue)
	return err == nil && n == 0
}
