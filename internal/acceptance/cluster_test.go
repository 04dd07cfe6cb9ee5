package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/tables"
)

const (
	// clusterSize is the number of app instances, batchSize the number of messages that each receives together.
	clusterSize = 3
	batchSize   = 4
)

// cluster is a managed application: hosts with a handler each, as the instances of a scaled-out app, over one storage
// account and one management endpoint of components.
type cluster struct {
	components *updatetest.Server
	queues     *azure.Queues
	tables     *azure.Tables
	registry   *registry.Registry
	hosts      [clusterSize]*localhost.Host
	logs       [clusterSize]string

	mu         sync.Mutex
	watch      func(host int, r *http.Request) moment
	gate       *gate
	violations int
}

// startCluster starts hosts with additional handler settings.
func startCluster(t *testing.T, env ...string) *cluster {
	t.Helper()
	storage := ownStorage(t)
	c := &cluster{components: updatetest.Listen(t)}
	var err1, err2 error
	c.queues, err1 = azure.NewQueues(storage)
	c.tables, err2 = azure.NewTables(storage)
	testenv.OK(t, errors.Join(err1, err2))
	c.registry = registry.New(c.tables, "")
	dist := stage(t, "managed-app")
	for i := range c.hosts {
		log := newLog(t)
		c.logs[i] = log.Name()
		var err error
		c.hosts[i], err = localhost.New(localhost.Config{ScriptRoot: dist, Queues: c.queues, CrashWindow: 1, Output: log, OnInvocation: c.observe,
			Env: append([]string{
				"ROUNDHOUSE_CONTEXT=managed-app", "ROUNDHOUSE_UPDATE_ENDPOINT=" + c.front(t, i), "ROUNDHOUSE_UPDATE_VERIFY_INTERVAL=200ms",
				"AzureWebJobsStorage=" + storage.ConnectionString(),
				// A failed message is redelivered immediately, an empty queue is polled often, and no host receives all messages.
				"AzureFunctionsJobHost__extensions__queues__visibilityTimeout=00:00:00",
				"AzureFunctionsJobHost__extensions__queues__maxPollingInterval=00:00:00.500",
				fmt.Sprintf("AzureFunctionsJobHost__extensions__queues__batchSize=%d", batchSize),
				"AzureFunctionsJobHost__extensions__queues__newBatchThreshold=0",
				// Otherwise it would check the same components, and write the same documents.
				`ROUNDHOUSE_SCHEDULES={"health": {"cron": "off"}}`,
			}, env...)})
		if err != nil {
			t.Fatal(err)
		}
		runHost(t, c.hosts[i])
	}
	return c
}

// front returns the address at which the handler of one host finds the components.
func (c *cluster) front(t *testing.T, host int) string {
	t.Helper()
	target := testenv.Must(url.Parse(c.components.URL))(t)
	forward := &httputil.ReverseProxy{Transport: &http.Transport{DisableKeepAlives: true}, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.held().pass(host, r)
		switch c.judge(host, r) {
		case before:
			hangUp(w)
		case after:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			hangUp(w)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// gate holds the first request about an instance's components, and reports the host that sent it.
type gate struct {
	instance string
	once     sync.Once
	came     chan int
	opened   chan struct{}
	open     func()
}

// hold blocks the first request about an instance until the gate is opened, at the latest by the end of the test.
// Meanwhile its host receives no other message, because its threshold is 0.
func (c *cluster) hold(t *testing.T, instance string) *gate {
	t.Helper()
	g := &gate{instance: instance, came: make(chan int, 1), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.open)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gate = g
	return g
}

func (c *cluster) held() *gate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate
}

// pass waits if this is the held request.
func (g *gate) pass(host int, r *http.Request) {
	if g == nil || !strings.HasPrefix(r.URL.Path, "/instances/"+g.instance+"/") {
		return
	}
	g.once.Do(func() {
		g.came <- host
		select {
		case <-g.opened:
		case <-r.Context().Done():
		}
	})
}

func (c *cluster) judge(host int, r *http.Request) moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch == nil {
		return ""
	}
	return c.watch(host, r)
}

// onRequest calls watch for each request about an instance's components, serialized, before the components see it. The
// result decides whether the components see the request (not for before, but for after); the sender gets no answer in
// either case.
func (c *cluster) onRequest(instance string, watch func(host int, r *http.Request) moment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = func(host int, r *http.Request) moment {
		if !strings.HasPrefix(r.URL.Path, "/instances/"+instance+"/") {
			return ""
		}
		return watch(host, r)
	}
}

func (c *cluster) observe(i localhost.Invocation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i.Violation() != nil {
		c.violations++
	}
}

// obeyed checks that no handler broke the host's contract.
func (c *cluster) obeyed(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.violations != 0 {
		t.Errorf("%d violations of the host's contract", c.violations)
	}
}

// create makes an instance.
func (c *cluster) create(t *testing.T, instance string) {
	t.Helper()
	testenv.Must(c.registry.Create(t.Context(), registry.Instance{InstanceID: instance}))(t)
}

// an upgrade is one update of an instance: it brings components to versions, in order.
type upgrade struct {
	instance, id, version string
	targets               []update.Target
}

func (u upgrade) job() string { return update.Engine + "-" + u.instance + "/" + u.id }

// requests returns the component requests of an undisturbed upgrade.
func (u upgrade) requests() (lines []string) {
	for _, target := range u.targets {
		lines = append(lines, u.instance+" "+target.Name+" "+target.Version)
	}
	return lines
}

// send puts the updates' messages into the queue.
func (c *cluster) send(t *testing.T, all ...upgrade) {
	t.Helper()
	for _, u := range all {
		input, err1 := json.Marshal(update.Input{Version: u.version, Components: u.targets})
		body, err2 := json.Marshal(engine.Message{CorrelationID: u.id, Engine: update.Engine, InstanceID: u.instance, Input: input})
		_, err3 := c.queues.Send(t.Context(), update.Queue, body, 0)
		testenv.OK(t, errors.Join(err1, err2, err3))
	}
}

// requested returns the component requests about an instance that were carried out.
func (c *cluster) requested(instance string) (lines []string) {
	for _, line := range c.components.Log() {
		if strings.HasPrefix(line, instance+" ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// succeeded waits until an update has succeeded. Its history is that of one successful run.
func (c *cluster) succeeded(t *testing.T, u upgrade) {
	t.Helper()
	history := engine.NewHistory(c.tables, "")
	var entries []engine.Entry
	testenv.Until(t, "history of "+u.id, func() bool {
		var err error
		entries, err = history.Run(t.Context(), update.Engine, u.id)
		return err == nil && len(entries) > 0 && entries[len(entries)-1].RunStatus != ""
	})
	want := []string{update.OperationProcess + " Succeeded "}
	for range u.targets {
		want = append(want, update.OperationComponentUpdate+" Succeeded ")
	}
	want[len(want)-1] += "Succeeded"
	var got []string
	for _, e := range entries {
		got = append(got, e.Operation+" "+string(e.Status)+" "+string(e.RunStatus))
	}
	if !slices.Equal(got, want) {
		t.Errorf("history of %s: %q, want %q", u.id, got, want)
	}
	dead, err := engine.NewDeadLetters(c.tables, "").Pending(t.Context(), update.Engine, u.id)
	if err != nil || len(dead) != 0 {
		t.Errorf("dead letters of %s: %v, %v", u.id, dead, err)
	}
}

// registered compares the registry's document of an instance with the result of the updates in this order: the version
// of the last update, the last version of each component, and no update in progress.
func (c *cluster) registered(t *testing.T, instance string, ordered ...upgrade) registry.Instance {
	t.Helper()
	i := testenv.Must(c.registry.Get(t.Context(), instance))(t)
	version, err1 := update.VersionOf(i)
	components, err2 := update.ComponentsOf(i)
	var pending any
	underWay, err3 := i.Field("pendingUpdate", &pending)
	testenv.OK(t, errors.Join(err1, err2, err3))
	want := map[string]string{}
	for _, u := range ordered {
		for _, target := range u.targets {
			want[target.Name] = target.Version
		}
	}
	same := len(want) == len(components)
	for name, v := range want {
		same = same && components[name].Version == v
	}
	if last := ordered[len(ordered)-1]; version != last.version || !same || underWay || i.Lock.JobID != "" {
		t.Errorf("the registry says of %s: version %q, components %v, under way %v, locked by %q; want version %q, components %v",
			instance, version, components, pending, i.Lock.JobID, last.version, want)
	}
	return i
}

// timeline returns the API's entries for a correlation id: that a history exists, and the ids of the orchestrations.
func (c *cluster) timeline(t *testing.T, id string) (told []string) {
	t.Helper()
	resp := testenv.Must(http.Get(c.hosts[0].URL() + "/api/timeline/" + id + "?limit=1000"))(t)
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Items []struct {
				Kind          string
				Orchestration struct{ ID string }
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("timeline of %s: %s, %v", id, resp.Status, err)
	}
	for _, item := range answer.Data.Items {
		if item.Kind != "history" && item.Kind != "orchestration" {
			continue
		}
		told = append(told, strings.TrimSpace(item.Kind+" "+item.Orchestration.ID))
	}
	return told
}

// forget deletes the rows of an orchestration.
func (c *cluster) forget(t *testing.T, id string) {
	t.Helper()
	const table = "orchestrations"
	n := 0
	for e, err := range tables.All(t.Context(), c.tables, table, tables.Query{Partition: tables.EscapeKey(id)}) {
		if err == nil {
			err = c.tables.Apply(t.Context(), table, tables.Delete(e.Key, ""))
		}
		if err != nil {
			t.Errorf("delete a row of %s: %v", id, err)
			return
		}
		n++
	}
	if n == 0 {
		t.Errorf("orchestration %s has no rows", id)
	}
}

// fates returns the outcomes of the deliveries of each correlation id, by host.
func (c *cluster) fates(t *testing.T) (all [clusterSize]map[string][]engine.Fate) {
	t.Helper()
	for host, path := range c.logs {
		all[host] = map[string][]engine.Fate{}
		text := testenv.Must(os.ReadFile(path))(t)
		for line := range strings.Lines(string(text)) {
			var l struct {
				CorrelationID string
				Fate          engine.Fate
			}
			if json.Unmarshal([]byte(line), &l) == nil && l.Fate != "" {
				all[host][l.CorrelationID] = append(all[host][l.CorrelationID], l.Fate)
			}
		}
	}
	return all
}

// killOn returns a watch function for onRequest that kills the handler that sends the request with this number, once.
// It passes the lock at that time to killed.
func (c *cluster) killOn(t *testing.T, number int, m moment, instance string, killed func(registry.Lock)) func(int, *http.Request) moment {
	seen := 0
	return func(host int, _ *http.Request) moment {
		if seen++; seen != number {
			return ""
		}
		if err := c.hosts[host].KillHandler(); err != nil {
			t.Errorf("kill the handler: %v", err)
		}
		i, err := c.registry.Get(t.Context(), instance)
		if err != nil {
			t.Errorf("the registry: %v", err)
		}
		killed(i.Lock)
		return m
	}
}
