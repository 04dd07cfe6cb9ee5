package acceptance

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/outbox"
)

var backlog = flag.Int("outbox.backlog", 3300, "how many events the processes of TestDispatchersDie have before them")

const (
	dispatchers = 4
	// perDestination is the default number of unsettled deliveries of a process, and so the most that a death may repeat.
	perDestination = 16
	// sweepNow is the host's request for a timer.
	sweepNow = `{"Data":{"timer":{"Schedule":{},"ScheduleStatus":null,"IsPastDue":false}},"Metadata":{}}`
)

// TestDispatchersDie lets four handlers deliver one backlog, and kills them repeatedly. Every event arrives, duplicates
// have the same key, and fewer than one in a hundred is a duplicate.
func TestDispatchersDie(t *testing.T) {
	testenv.Long(t)
	t.Parallel() // has its own storage
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	f := newFleet(t, ownStorage(t))
	want := f.fill(t, *backlog)

	// Limit the deaths so that their repetitions stay below one percent.
	deaths := (*backlog - 1) / (100 * perDestination)
	sink := f.sink
	for range deaths {
		victim := random.IntN(dispatchers) // drawn here: requests are concurrent
		sink.at(1+random.IntN(*backlog*9/10), func() { f.kill(t, victim) })
	}
	began := time.Now()
	f.start(t)
	sink.await(t, len(want))
	took := time.Since(began)

	admin := outbox.NewAdmin(f.outbox)
	testenv.Until(t, "nothing is pending", func() bool {
		page, err := admin.List(t.Context(), outbox.Filter{Status: outbox.StatusPending, Limit: 1})
		return err == nil && len(page.Records) == 0
	})
	f.stop(t)
	got, requests := sink.received()
	for key, tenant := range want {
		if got[key] != tenant {
			t.Errorf("event %s of %s: delivered for %q", key, tenant, got[key])
		}
	}
	duplicates := requests - len(got)
	if len(got) != len(want) || 100*duplicates >= *backlog {
		t.Errorf("%d events of %d, %d duplicates", len(got), len(want), duplicates)
	}
	if f.deaths != deaths {
		t.Errorf("%d deaths of %d", f.deaths, deaths)
	}
	if n := f.processed(t, admin); n != len(want) {
		t.Errorf("%d events are processed, of %d", n, len(want))
	}
	t.Logf("%d events, %d processes, %d kills: %d duplicates (%.2f %%), %.1f s, %.0f events/s", *backlog, dispatchers, deaths, duplicates,
		100*float64(duplicates)/float64(*backlog), took.Seconds(), float64(*backlog)/took.Seconds())
}

// fleet is a set of handlers over one storage account, each started as by the host.
type fleet struct {
	dist    string
	account azure.Account
	outbox  *outbox.Outbox
	sink    *sink
	tenants []string
	handler [dispatchers]*process

	mu     sync.Mutex
	deaths int
	lives  sync.WaitGroup
	ended  chan struct{}
}

func newFleet(t *testing.T, storage azure.Account) *fleet {
	t.Helper()
	f := &fleet{dist: stage(t, "publisher"), account: storage, sink: newSink(t), ended: make(chan struct{})}
	table, err1 := azure.NewTables(storage)
	queue, err2 := azure.NewQueues(storage)
	blob, err3 := azure.NewBlobs(storage)
	testenv.OK(t, errors.Join(err1, err2, err3))
	f.outbox = testenv.Must(outbox.New(outbox.Config{Tables: table, Queues: queue, Blobs: blob}))(t)
	testenv.OK(t, f.outbox.Create(t.Context()))
	return f
}

// fill adds the backlog, of tenants of different sizes, and returns the tenant of each key. No tenant is large, because
// the emulator reads a whole partition for each row of a transaction.
func (f *fleet) fill(t *testing.T, n int) map[string]string {
	t.Helper()
	writer := outbox.NewWriter(f.outbox)
	want := map[string]string{}
	for left, i := n, 0; left > 0; i++ {
		tenant := fmt.Sprintf("fleet-%d", i)
		size := min(left, 50*(1+i%4))
		var messages []outbox.Message
		for j := range size {
			key := outbox.Key(tenant, "fleet", fmt.Sprint(j), "added", "")
			want[key.String()] = tenant
			messages = append(messages, outbox.Message{EventType: "fleet.added", Key: key, Payload: fmt.Appendf(nil, `{"n":%d}`, j)})
		}
		testenv.Must(writer.AddMany(t.Context(), tenant, messages))(t)
		f.tenants = append(f.tenants, tenant)
		left -= size
	}
	return want
}

func (f *fleet) start(t *testing.T) {
	t.Helper()
	for i := range f.handler {
		f.handler[i] = f.launch(t)
	}
	for i := range f.handler {
		f.lives.Go(func() { f.live(t, i) })
	}
	t.Cleanup(func() { f.stop(t) })
}

// live is the host of one handler: its timer fires immediately, and a dead handler is restarted.
func (f *fleet) live(t *testing.T, i int) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		f.mu.Lock()
		p := f.handler[i]
		f.mu.Unlock()
		resp, err := client.Post(p.url+"/outbox-sweep-timer", "application/json", strings.NewReader(sweepNow))
		if err == nil {
			resp.Body.Close()
		}
		select {
		case <-f.ended:
			p.end()
			return
		default:
		}
		if err == nil {
			continue
		}
		p.end()
		next := f.launch(t)
		f.mu.Lock()
		f.handler[i] = next
		f.mu.Unlock()
	}
}

// kill kills a handler, as kill -9 does.
func (f *fleet) kill(t *testing.T, i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deaths++
	if err := f.handler[i].cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("kill handler %d: %v", i, err)
	}
}

func (f *fleet) stop(t *testing.T) {
	t.Helper()
	select {
	case <-f.ended:
	default:
		close(f.ended)
	}
	f.lives.Wait()
}

// processed counts the processed events.
func (f *fleet) processed(t *testing.T, admin *outbox.Admin) (n int) {
	t.Helper()
	for _, tenant := range f.tenants {
		filter := outbox.Filter{TenantID: tenant, Status: outbox.StatusProcessed, Limit: outbox.MaxLimit}
		for more := true; more; more = filter.Continuation != "" {
			page := testenv.Must(admin.List(t.Context(), filter))(t)
			n, filter.Continuation = n+len(page.Records), page.Continuation
		}
	}
	return n
}

// process is one life of a handler.
type process struct {
	cmd    *exec.Cmd
	url    string
	output sync.WaitGroup
}

// launch starts a handler and waits until it listens and has prepared its storage.
func (f *fleet) launch(t *testing.T) *process {
	p := &process{cmd: exec.Command(filepath.Join(f.dist, "handler"))}
	p.cmd.Dir = f.dist
	p.cmd.Env = append(os.Environ(),
		"FUNCTIONS_CUSTOMHANDLER_PORT=0", "FUNCTIONS_APP_ROOT_PATH="+f.dist, "AzureWebJobsStorage="+f.account.ConnectionString(),
		"ROUNDHOUSE_OUTBOX="+f.sink.document(), "ROUNDHOUSE_OUTBOX_POLL_INTERVAL_SECONDS=1",
		// Claims of a dead handler expire soon, and yet a busy machine causes no duplicates.
		"ROUNDHOUSE_OUTBOX_DELIVERY_TIMEOUT=10s", "ROUNDHOUSE_OUTBOX_CLAIM_DURATION=20s")
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Errorf("start a handler: %v", err)
		return p
	}
	lines := bufio.NewReader(stdout)
	var last []byte
	prepared := false
	for (p.url == "" || !prepared) && err == nil {
		var text []byte
		text, err = lines.ReadBytes('\n')
		var line struct{ Msg, Address string }
		if json.Unmarshal(text, &line) == nil && line.Msg == "listening" {
			p.url = "http://" + line.Address
		}
		prepared = prepared || line.Msg == "storage is prepared"
		if len(text) > 0 {
			last = text
		}
	}
	if err != nil {
		t.Errorf("a handler does not listen: %v; its last words: %s", err, last)
	}
	p.output.Go(func() { _, _ = io.Copy(io.Discard, lines) }) // ends with the process
	return p
}

// end makes sure that the process is gone.
func (p *process) end() {
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill() // it may be dead already
		p.output.Wait()
		_ = p.cmd.Wait() // the error is that of the kill
	}
}

// told is a received event.
type told struct {
	Type, Tenant, CorrelationID string
	Body                        []byte
}

// sink receives the events on the wire.
type sink struct {
	url string

	mu       sync.Mutex
	got      map[string]string // tenant by key
	events   []told
	requests int
	actions  map[int][]func()
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{got: map[string]string{}, actions: map[int][]func(){}}
	server := httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *sink) document() string {
	return `{"destinations":{"sink":{"http":{"url":"` + s.url + `","allow":["127.0.0.0/8"],"allowPlaintext":true}}},"routes":[{"eventType":"*","destination":"sink"}]}`
}

// at runs a function when the request with this number arrives, before it is answered.
func (s *sink) at(number int, do func()) { s.actions[number] = append(s.actions[number], do) }

func (s *sink) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	s.mu.Lock()
	key := r.Header.Get(outbox.HeaderIdempotencyKey)
	if _, again := s.got[key]; !again { // a receiver drops duplicates, for instance after a late answer of a busy machine
		s.events = append(s.events, told{r.Header.Get("ce-type"), r.Header.Get("ce-tenantid"), r.Header.Get("ce-correlationid"), body})
	}
	s.requests++
	s.got[key] = r.Header.Get("ce-tenantid")
	actions := s.actions[s.requests]
	s.mu.Unlock()
	for _, do := range actions {
		do()
	}
	w.WriteHeader(http.StatusNoContent)
}

// received returns the tenants of the received keys, and the number of requests.
func (s *sink) received() (map[string]string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got, s.requests
}

// told waits for an event, and returns all of the same type with this correlation id.
func (s *sink) told(t *testing.T, kind, correlationID string) []told {
	t.Helper()
	var found []told
	testenv.Until(t, "the event "+kind+" of "+correlationID, func() bool {
		found = nil
		for _, e := range s.all() {
			if e.Type == kind && e.CorrelationID == correlationID {
				found = append(found, e)
			}
		}
		return len(found) > 0
	})
	return found
}

func (s *sink) all() []told {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// heard returns all events as one text.
func (s *sink) heard() (text []byte) {
	for _, e := range s.all() {
		text = fmt.Appendf(text, "%s %s %s %s\n", e.Type, e.Tenant, e.CorrelationID, e.Body)
	}
	return text
}

// await waits until n events have arrived.
func (s *sink) await(t *testing.T, n int) {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("%d events", n), func() (got int, ok bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.got), len(s.got) >= n
	})
}
