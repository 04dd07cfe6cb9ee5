package handler_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/keys"
	"github.com/vibedata/roundhouse/services/keys/keystest"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

func encryptedWith(key string) map[string]string {
	return map[string]string{"ROUNDHOUSE_PAYLOAD_KEY": key}
}

func asItIs(*handler.Config) {}

// developmentKey returns the encryption key of an app in a test.
func developmentKey(t *testing.T, h *handlertest.Host) *keys.Development {
	t.Helper()
	key, err := keys.NewDevelopment(secrets.NewDevelopment(h.Tables), "payloads")
	testenv.OK(t, err)
	return key
}

func rotate(t *testing.T, h *handlertest.Host) {
	t.Helper()
	testenv.Must(developmentKey(t, h).Rotate(t.Context()))(t)
}

// Runs continue over all changes: encryption is turned on, its key is rotated, and it is turned off, while they wait
// and while messages are in flight.
func TestPayloadsOverChangesOfTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlertest.New(t, payloadApp(), nil)
		s := &payloadScenario{t, h}
		begin := func(name string) { s.intake(name, "wait", payloadMarker) }
		event := func(name string) { s.do(http.MethodPost, "/api/orchestrations/work-"+name+"/events/go", payloadMarker) }
		begin("before")
		s.intake("refused-before", "refuse", payloadMarker)
		h.Restart(encryptedWith("payloads"), asItIs)
		event("before")
		begin("first")
		rotate(t, h)
		h.Restart(encryptedWith("payloads"), asItIs)
		event("first")
		begin("second")
		s.intake("refused-second", "refuse", payloadMarker)
		event("second")
		begin("other")
		h.Restart(encryptedWith("another-key"), asItIs)
		event("other")
		begin("last")
		event("last")
		h.Restart(nil, asItIs)
		s.later()
		for _, name := range []string{"before", "first", "second", "other", "last"} {
			s.completeTask("work-" + name)
		}
		s.later()
		for _, name := range []string{"before", "first", "second", "other", "last"} {
			if out := h.Outcome("work-" + name); out.Status != orchestrator.Completed || !strings.Contains(string(out.Output), payloadMarker) {
				t.Errorf("%s: %+v", name, out)
			}
		}
		letters := h.DeadLetters("work")
		if len(letters) != 2 {
			t.Fatalf("%+v", letters)
		}
		for _, l := range letters {
			if answer := s.do(http.MethodGet, letterPath(l), nil); strings.Count(answer, payloadMarker) < 2 {
				t.Errorf("%s", answer)
			}
		}
	})
}

// completeTask answers the one open task of a run.
func (s *payloadScenario) completeTask(orchestration string) {
	s.Helper()
	for _, c := range s.h.Outcome(orchestration).Calls {
		if id := c.TaskID(); id != "" && c.EndedAt.IsZero() {
			s.do(http.MethodPost, "/api/tasks/"+orchestration+"/"+id+"/complete", map[string]any{"output": payloadInput{Text: payloadMarker}})
			return
		}
	}
	s.Errorf("%s has no open task", orchestration)
}

// Without its key, a run waits, and so do its messages, for any time: nothing is dead-lettered or abandoned. The log
// and the API report the problem. When the key is available again, the run continues.
func TestPayloadsWithoutTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlertest.New(t, payloadApp(), encryptedWith("payloads"))
		s := &payloadScenario{t, h}
		s.intake("waits", "wait", payloadMarker)
		s.do(http.MethodPost, "/api/work", map[string]any{"correlationId": "queued", "input": payloadInput{"echo", payloadMarker}})
		old := newestVersion(t, h)
		rotate(t, h)
		time.Sleep(24 * time.Hour)
		// This event is readable with the newer version. Its orchestration is not.
		s.do(http.MethodPost, "/api/orchestrations/work-waits/events/go", payloadMarker)
		testenv.OK(t, developmentKey(t, h).Disable(t.Context(), old))
		var log bytes.Buffer
		h.Restart(encryptedWith("payloads"), func(c *handler.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		minutes := 200
		if testing.Short() {
			minutes = 50
		}
		for range minutes {
			time.Sleep(time.Minute)
			h.Deliver()
			h.Tick("orchestration-sweep-timer", time.Now())
		}
		for _, queue := range []string{"work-queue", "orchestration-signals"} {
			time.Sleep(time.Minute)
			left, err := h.Queues.Receive(t.Context(), queue, queues.MaxReceive, time.Second)
			if err != nil || len(left) == 0 {
				t.Errorf("%s has no messages, %v", queue, err)
			}
			for _, m := range left {
				if m.DequeueCount > 2 { // the host abandons a message at 8
					t.Errorf("%s: a message was received %d times", queue, m.DequeueCount)
				}
			}
		}
		for _, name := range []string{"work", engine.SignalEngine} {
			if letters := h.DeadLetters(name); len(letters) != 0 {
				t.Errorf("dead letters of %s: %+v", name, letters)
			}
		}
		if text := log.String(); !strings.Contains(text, "development/payloads/"+old) || !strings.Contains(text, "disabled") {
			t.Errorf("the log names neither the key nor the reason: %.2000s", text)
		}
		for _, path := range []string{"/api/orchestrations/work-waits", "/api/runtime/webhooks/durabletask/instances/work-waits"} {
			answers(t, h, http.StatusServiceUnavailable, "key cannot be used", http.MethodGet, path, "")
		}
		s.intake("young", "echo", payloadMarker) // runs that need only the newer version continue
		if out := h.Outcome("work-young"); out.Status != orchestrator.Completed {
			t.Errorf("%+v", out)
		}
		enable(t, h, old)
		s.later()
		s.completeTask("work-waits")
		s.later()
		for _, name := range []string{"waits", "queued"} {
			if out := h.Outcome("work-" + name); out.Status != orchestrator.Completed {
				t.Errorf("%s: %+v", name, out)
			}
		}
	})
}

func newestVersion(t *testing.T, h *handlertest.Host) string {
	t.Helper()
	versions, err := secrets.NewDevelopment(h.Tables).Versions(t.Context(), secrets.Name("payloadkey", "payloads"))
	if err != nil || len(versions) == 0 {
		t.Fatal(versions, err)
	}
	return versions[len(versions)-1].Version
}

// enable enables a key version, as an operator does in the vault.
func enable(t *testing.T, h *handlertest.Host, version string) {
	t.Helper()
	e, err := h.Tables.Get(t.Context(), secrets.DevelopmentTable, tables.Key{Partition: secrets.Name("payloadkey", "payloads"), Row: version})
	testenv.OK(t, err)
	e.Properties["Enabled"] = true
	testenv.OK(t, h.Tables.Apply(t.Context(), secrets.DevelopmentTable, tables.Replace(e)))
}

// An app with an unusable key names the setting and the problem, and requeues messages unchanged. When the key is
// usable, it continues.
func TestStartWithoutTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlertest.New(t, payloadApp(), encryptedWith("payloads"))
		s := &payloadScenario{t, h}
		s.do(http.MethodPost, "/api/work", map[string]any{"correlationId": "c", "input": payloadInput{"echo", payloadMarker}})
		version := newestVersion(t, h)
		testenv.OK(t, developmentKey(t, h).Disable(t.Context(), version))
		other, err := handler.New(payloadApp(), handler.Config{Tables: h.Tables, Queues: h.Queues, Blobs: h.Blobs, Lookup: lookup(encryptedWith("payloads"))})
		testenv.OK(t, err)
		defer other.Close()
		if err := other.Start(t.Context()); !errors.Is(err, keys.ErrForbidden) || !strings.Contains(err.Error(), "ROUNDHOUSE_PAYLOAD_KEY") {
			t.Errorf("%v", err)
		}
		sent, err := h.Queues.Receive(t.Context(), "work-queue", 1, time.Hour)
		if err != nil || len(sent) != 1 {
			t.Fatal(sent, err)
		}
		body := fmt.Sprintf(`{"Data":{"message":%q},"Metadata":{"Id":%q,"DequeueCount":"1"}}`, base64.StdEncoding.EncodeToString([]byte(sent[0].Text)), sent[0].ID)
		answer := httptest.NewRecorder()
		other.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/work-queue-trigger", strings.NewReader(body)))
		if err := h.Queues.Delete(t.Context(), "work-queue", sent[0].ID, sent[0].PopReceipt); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("%d %s, %v", answer.Code, answer.Body, err)
		}
		enable(t, h, version)
		if err := other.Start(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		if n := h.Deliver(); len(h.History("work")) == 0 {
			t.Errorf("the message is lost: %d deliveries, %+v", n, h.DeadLetters("work"))
		}
	})
}

// A damaged message goes to the poison queue like any other that fails, and stays there, requeued each time, so that
// it does not expire.
func TestDamagedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlertest.New(t, payloadApp(), encryptedWith("payloads"))
		s := &payloadScenario{t, h}
		s.do(http.MethodPost, "/api/work", map[string]any{"correlationId": "c", "input": payloadInput{"echo", payloadMarker}})
		got, err := h.Queues.Receive(t.Context(), "work-queue", 1, time.Second)
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		damaged := []byte(got[0].Text)
		if at := &damaged[len(damaged)-8]; *at == 'A' { // stays base64
			*at = 'B'
		} else {
			*at = 'A'
		}
		testenv.OK(t, errors.Join(h.Queues.Delete(t.Context(), "work-queue", got[0].ID, got[0].PopReceipt), h.Queues.CreateQueue(t.Context(), "work-queue-poison")))
		for queue, deliver := range map[string]func(){
			"work-queue": func() { h.Deliver() }, // from other queues it may receive its own messages
			"work-queue-poison": func() {
				if !h.Tick("orchestration-sweep-timer", time.Now()) {
					t.Error("the timer failed")
				}
			},
		} {
			testenv.Must(h.Queues.SendText(t.Context(), queue, string(damaged), 0))(t)
			deliver()
			time.Sleep(2 * time.Minute)
			back, err := h.Queues.Receive(t.Context(), queue, 32, time.Hour)
			if err != nil || len(back) != 1 || back[0].Text != string(damaged) {
				t.Errorf("%s has %v, %v", queue, back, err)
			}
		}
		if letters := h.DeadLetters("work"); len(letters) != 0 {
			t.Errorf("%+v", letters)
		}
	})
}

// A crash at any storage call changes nothing: another process continues, and no payload is in clear meanwhile.
func TestCrashesWithEncryption(t *testing.T) {
	t.Parallel()
	faultstest.EachCall(t, []faults.Fault{faults.CrashBefore, faults.CrashAfter}, 15, func(t *testing.T, plan *faults.Plan) {
		var on atomic.Bool
		seen := newRecorder(payloadMarker)
		h := handlertest.NewWith(t, payloadApp(), encryptedWith("payloads"), func(c *handler.Config) {
			watch(c, seen.look)
			through(c, while(&on, plan.Intercept))
		})
		on.Store(true)
		message := `{"correlationId": "c", "tenantId": "contoso", "input": {"do": "crash", "text": "` + payloadMarker + `"}}`
		h.Do(http.MethodPost, "/api/work", message)
		h.Deliver()
		if on.Store(false); plan.Crashed() {
			h.Restart(encryptedWith("payloads"), func(c *handler.Config) { watch(c, seen.look) })
			h.Do(http.MethodPost, "/api/work", message) // a caller without an answer retries
		}
		(&payloadScenario{t, h}).later()
		if out := h.Outcome("work-c"); out.Status != orchestrator.Completed || string(out.Output) != `"`+payloadMarker+`"` {
			t.Errorf("%+v", out)
		}
		if letters := h.DeadLetters("work"); len(letters) != 0 {
			t.Errorf("%+v", letters)
		}
		if places := seen.places(); len(places) > 0 {
			t.Errorf("in clear: %v", places)
		}
	})
}

// through adds an interceptor to the stores of an app.
func through(c *handler.Config, i faults.Interceptor) {
	c.Tables, c.Queues, c.Blobs = faults.Tables(c.Tables, i), faults.Queues(c.Queues, i), faults.Blobs(c.Blobs, i)
}

// while returns an interceptor that is inactive unless on is set.
func while(on *atomic.Bool, i faults.Interceptor) faults.Interceptor {
	return func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
		if !on.Load() {
			return next(ctx)
		}
		return i(ctx, c, next)
	}
}

// A process requests one data key from Key Vault, and another process unwraps it once.
func TestPayloadsWithKeyVault(t *testing.T) {
	t.Parallel()
	vault := keystest.NewVault(t)
	testenv.Must(vault.Rotate("payloads"))(t)
	far := func(name string) func(*handler.Config) {
		key, err := keys.NewKeyVault(vault.URL(), name, vault.Credential(), vault.Options())
		testenv.OK(t, err)
		return func(c *handler.Config) { c.Keys = key }
	}
	h := handlertest.NewWith(t, payloadApp(), encryptedWith("payloads"), far("payloads"))
	s := &payloadScenario{t, h}
	for i := range 10 {
		s.intake(fmt.Sprint(i), "echo", payloadMarker)
	}
	h.Restart(nil, far(""))
	for i := range 10 {
		if out := h.Outcome(fmt.Sprint("work-", i)); out.Status != orchestrator.Completed || string(out.Output) != `"`+payloadMarker+`"` {
			t.Errorf("%+v", out)
		}
	}
	for operation, want := range map[string]int{"get": 1, "wrapkey": 1, "unwrapkey": 1} {
		testenv.Equal(t, fmt.Sprintf("times of %s", operation), want, vault.Count(operation))
	}
}
