package handler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/preparation"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/logs/logstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// account is storage that can be unavailable, and counts its requests.
type account struct {
	tables *tables.Memory
	queues *queues.Memory
	blobs  *blobs.Memory

	mu sync.Mutex
	// away reports whether a call gets no answer.
	away func(faults.Call) bool
	// asked counts the successful calls, failed the others.
	asked, failed map[faults.Call]int
}

func newAccount(away func(faults.Call) bool) *account {
	return &account{tables: tables.NewMemory(), queues: queues.NewMemory(), blobs: blobs.NewMemory(), away: away, asked: map[faults.Call]int{}, failed: map[faults.Call]int{}}
}

func (a *account) intercept(ctx context.Context, c faults.Call, next func(context.Context) error) error {
	a.mu.Lock()
	away := a.away(c)
	if away {
		a.failed[c]++
	} else {
		a.asked[c]++
	}
	a.mu.Unlock()
	if away {
		return fmt.Errorf("%s %s: %w", c.Operation, c.Target, tables.ErrOutcomeUnknown)
	}
	return next(ctx)
}

// is changes the unavailable calls.
func (a *account) is(away func(faults.Call) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = away
}

func everything(faults.Call) bool { return true }

func nothingIsAway(faults.Call) bool { return false }

// begun is an app whose storage is not prepared yet.
type begun struct {
	t *testing.T
	*Handler
	log    *logstest.Output
	logger *slog.Logger
}

func (a *account) begin(t *testing.T, pairs ...string) begun {
	t.Helper()
	return a.beginApp(t, workApp(), pairs...)
}

func (a *account) beginApp(t *testing.T, app App, pairs ...string) begun {
	t.Helper()
	var out logstest.Output
	log, stop := newLog(&out, slog.LevelDebug)
	h, err := New(app, Config{Lookup: emulator.With(append(pairs, "AZURE_FUNCTIONS_ENVIRONMENT", "Development", "FUNCTIONS_CORETOOLS_ENVIRONMENT", "true")...).Lookup,
		Tables: faults.Tables(a.tables, a.intercept), Queues: faults.Queues(a.queues, a.intercept), Blobs: faults.Blobs(a.blobs, a.intercept),
		Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close()
		stop()
		logstest.Check(t, out.Bytes())
	})
	return begun{t, h, &out, log}
}

// do sends a request as the host does.
func (b begun) do(method, path, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(b.t.Context(), method, path, strings.NewReader(body))
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, req)
	return rec
}

// deliver delivers one message of a queue, as the host does, and reports whether the app has accepted it.
func (b begun) deliver(a *account, function, queue string) bool {
	b.t.Helper()
	received, err := a.queues.Receive(b.t.Context(), queue, 1, 10*time.Minute)
	if err != nil || len(received) != 1 {
		b.t.Fatalf("%d messages of %s, %v", len(received), queue, err)
	}
	m := received[0]
	body, err := json.Marshal(map[string]any{"Data": map[string]any{"message": []byte(m.Text)}, "Metadata": map[string]any{"Id": m.ID, "DequeueCount": fmt.Sprint(m.DequeueCount)}})
	if err != nil {
		b.t.Fatal(err)
	}
	taken := b.do(http.MethodPost, "/"+function, string(body)).Code == http.StatusOK
	if taken {
		err = a.queues.Delete(b.t.Context(), queue, m.ID, m.PopReceipt)
	} else {
		_, err = a.queues.Renew(b.t.Context(), queue, m.ID, m.PopReceipt, 0)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return taken
}

// A process that starts without storage answers: the probes as specified, requests without storage with their result,
// and the rest with a request to retry.
func TestAnswersWithoutStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(everything)
		b := a.begin(t)
		if rec := b.do(http.MethodGet, "/api/health/ready", ""); rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), "has only just started") {
			t.Errorf("before the first round: %d %s", rec.Code, rec.Body)
		}
		if err := b.Start(t.Context()); !errors.Is(err, tables.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			method, path, body string
			status             int
			want               string
			took               time.Duration
		}{
			{http.MethodGet, "/", "", http.StatusOK, "ready", 0},
			{http.MethodGet, "/api/health/live", "", http.StatusOK, `"pass"`, 0},
			{http.MethodGet, "/api/health/ready", "", http.StatusServiceUnavailable, `"output":"Storage is not prepared yet. No answer; the log has the reason."`, 0},
			{http.MethodGet, "/api/health/full", "", http.StatusServiceUnavailable, "storage:prepared", 0},
			{http.MethodGet, "/api/openapi.json", "", http.StatusOK, `"openapi"`, 0},
			{http.MethodGet, "/api/me", "", http.StatusOK, "Succeeded", 0},
			{http.MethodGet, "/api/engines", "", http.StatusOK, "work", 0},
			{http.MethodGet, "/api/history", "", http.StatusServiceUnavailable, `"code":"ServiceUnavailable"`, requestPatience},
			{http.MethodPost, "/api/orchestrations", `{"name":"work"}`, http.StatusServiceUnavailable, `"code":"ServiceUnavailable"`, requestPatience},
			{http.MethodGet, "/api/runtime/webhooks/durabletask/instances", "", http.StatusServiceUnavailable, "cannot be used yet", requestPatience},
			{http.MethodPost, "/api/work", `{"correlationId":"c1"}`, http.StatusServiceUnavailable, `"code":"Unavailable"`, requestPatience},
			{http.MethodGet, "/api/pages/one", "", http.StatusServiceUnavailable, "cannot be used yet", requestPatience},
			{http.MethodGet, "/api/nothing", "", http.StatusNotFound, "NotFound", 0},
		} {
			began := time.Now()
			rec := b.do(tt.method, tt.path, tt.body)
			if rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.want) || time.Since(began) != tt.took {
				t.Errorf("%s %s: %d after %v: %s", tt.method, tt.path, rec.Code, time.Since(began), rec.Body)
			}
			if tt.took > 0 && rec.Header().Get("Retry-After") == "" {
				t.Errorf("%s %s: no Retry-After", tt.method, tt.path)
			}
		}
		if asked := len(a.asked); asked != 0 {
			t.Errorf("%d requests have reached storage", asked)
		}
	})
}

// Storage becomes available after ten minutes. Earlier deliveries have used up no attempt, and everything continues
// by itself.
func TestStorageComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The queues are available: the host delivers. A role for tables is missing.
		a := newAccount(func(c faults.Call) bool { return c.Service == "tables" })
		b := a.begin(t)
		if err := a.queues.CreateQueue(t.Context(), "work-queue"); err != nil {
			t.Fatal(err)
		}
		if _, err := a.queues.Send(t.Context(), "work-queue", []byte(`{"correlationId":"c1"}`), 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.program.Preparation.Run(ctx) }()
		defer cancel()
		for range 6 { // the engine dead-letters at the fifth attempt
			if !b.deliver(a, "work-queue-trigger", "work-queue") {
				t.Fatal("a delivery has failed, which uses up an attempt")
			}
			time.Sleep(unreadDelay + time.Second)
		}
		a.is(nothingIsAway)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if !b.deliver(a, "work-queue-trigger", "work-queue") {
			t.Error("the delivery has failed")
		}
		rec := b.do(http.MethodGet, "/api/history?correlationId=c1", "")
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"status":"Succeeded","durationMs"`) && !strings.Contains(rec.Body.String(), `"Succeeded"`) {
			t.Errorf("history: %d %s", rec.Code, rec.Body)
		}
		var delivered struct {
			Attempt int
		}
		for line := range strings.Lines(b.log.String()) {
			if strings.Contains(line, `"fate":`) && json.Unmarshal([]byte(line), &delivered) == nil && delivered.Attempt != 1 {
				t.Errorf("attempt %d: %s", delivered.Attempt, line)
			}
		}
		for _, want := range []string{`"fate":"succeeded"`, `"outcome":"put back"`, `"msg":"storage is prepared"`} {
			if !strings.Contains(b.log.String(), want) {
				t.Errorf("%s is not in the log", want)
			}
		}
		if !invocationNamed(b.log.String(), "c1") {
			t.Errorf("no invocation has its correlation id:\n%s", b.log)
		}
	})
}

// invocationNamed reports whether the log has an invocation with this correlation id.
func invocationNamed(log, id string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"msg":"invocation"`) && strings.Contains(line, `"correlationId":"`+id+`"`) {
			return true
		}
	}
	return false
}

// One container fails once: the second round requests only it and its dependents; a third requests nothing.
func TestOneFailureIsRepeatedAlone(t *testing.T) {
	t.Parallel()
	missing := faults.Call{Service: "blobs", Operation: "CreateContainer", Target: "orchestrations"}
	a := newAccount(func(c faults.Call) bool { return c == missing })
	b := a.begin(t)
	err := b.Start(t.Context())
	round, ok := errors.AsType[*preparation.RoundError](err)
	if !ok || len(round.Failures) != 1 || !strings.Contains(err.Error(), "CreateContainer orchestrations") {
		t.Fatalf("first: %v", err)
	}
	creations := len(a.asked)
	t.Logf("%d of %d requests of a start have succeeded", creations, round.Tried)
	if other := (faults.Call{Service: "tables", Operation: "Apply", Target: engine.DefaultHistoryTable}); a.asked[other] > 0 {
		t.Error("engines were registered before everything was there")
	}
	a.asked = map[faults.Call]int{}
	a.is(nothingIsAway)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.asked[missing] != 1 {
		t.Errorf("the container was asked for %d times", a.asked[missing])
	}
	for _, c := range slices.Collect(maps.Keys(a.asked)) {
		if strings.HasPrefix(c.Operation, "Create") && c != missing {
			t.Errorf("%+v was repeated", c)
		}
	}
	a.asked = map[faults.Call]int{}
	if err := b.Start(t.Context()); err != nil || len(a.asked) != 0 {
		t.Errorf("third: %v, %v", err, a.asked)
	}
}

// The real process starts without storage. It answers, logs the missing storage once a round, and works as soon as
// storage is available, without a restart.
func TestProcessWithoutStorage(t *testing.T) {
	t.Parallel()
	storage.Account(t) // Azurite is installed
	config := azurite.Config{DataDir: t.TempDir(), BlobPort: testenv.Port(t), QueuePort: testenv.Port(t), TablePort: testenv.Port(t)}
	nobody := azure.EmulatorAccount(config.BlobPort, config.QueuePort, config.TablePort)
	cmd := exec.CommandContext(testenv.Context(t), os.Args[0])
	cmd.Env = childEnv(emulator.With(settings.Storage, nobody.ConnectionString()))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	// until reads the log up to a record, and returns it.
	until := func(msg string) (found logRecord, line string) {
		t.Helper()
		for found.Msg != msg && lines.Scan() {
			found = logRecord{}
			line = lines.Text()
			_ = json.Unmarshal(lines.Bytes(), &found) // other lines are not JSON
		}
		if found.Msg != msg {
			t.Fatalf("no %q before the process ended", msg)
		}
		return found, line
	}
	listening, _ := until("listening")
	base := "http://" + listening.Address
	mustRequest(t, http.MethodGet, base+"/", "", http.StatusOK)
	mustRequest(t, http.MethodGet, base+"/api/health/live", "", http.StatusOK)
	missing, line := until("storage is not prepared: what needs it waits, or is refused, until it is")
	if !strings.Contains(missing.Error, "steps failed") || !strings.Contains(missing.Error, "without an answer") || len(line) > 1000 {
		t.Errorf("%d bytes: %s", len(line), line)
	}
	mustRequest(t, http.MethodGet, base+"/api/health/ready", "", http.StatusServiceUnavailable)
	server, err := azurite.Start(testenv.Context(t), config)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	until("storage is prepared")
	mustRequest(t, http.MethodGet, base+"/api/health/ready", "", http.StatusOK)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if last, _ := until("stopped"); last.ExitCode != exitRestart {
		t.Errorf("last record %+v", last)
	}
	_ = cmd.Wait() // the error is the exit code
}

// Timers fire, HTTP is answered, and no host listens to the queues: the app detects that, and reports it until a host
// does.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(nothingIsAway)
		b := a.begin(t)
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		sweep := func() {
			time.Sleep(5 * time.Minute)
			if rec := b.do(http.MethodPost, "/orchestration-sweep-timer", timerBody); rec.Code != http.StatusOK {
				t.Fatalf("sweep: %d %s", rec.Code, rec.Body)
			}
		}
		for range 3 {
			sweep()
		}
		if rec := b.do(http.MethodGet, "/api/health/full", ""); rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), "do not come to the app") {
			t.Errorf("nobody listens: %d %s", rec.Code, rec.Body)
		}
		if !b.deliver(a, "orchestration-signal-trigger", "orchestration-signals") {
			t.Error("the probe was not taken")
		}
		time.Sleep(time.Minute)
		if rec := b.do(http.MethodGet, "/api/health/full", ""); strings.Contains(rec.Body.String(), "do not come to the app") || !strings.Contains(rec.Body.String(), `"queues:listening":[{"componentType":"component","observedValue":60,`) {
			t.Errorf("somebody listens: %d %s", rec.Code, rec.Body)
		}
		if rec := b.do(http.MethodGet, "/api/dlq", ""); !strings.Contains(rec.Body.String(), `"items":[]`) {
			t.Errorf("dead letters: %s", rec.Body)
		}
	})
}

const timerBody = `{"Data":{"timer":{"ScheduleStatus":null,"IsPastDue":false}},"Metadata":{}}`
