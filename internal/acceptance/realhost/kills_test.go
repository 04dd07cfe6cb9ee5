package realhost

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// start returns the request that starts an orchestration with an id.
func start(id, key string) exchange {
	return exchange{line: "POST /api/orchestrations", headers: []string{"Content-Type: application/json", "x-functions-key: " + key},
		body: fmt.Sprintf(`{"orchestrator":"hmac","id":%q,"input":{"operation":"rotate","instanceId":"payments"},"correlationId":%q}`, id, strings.TrimPrefix(id, "hmac-"))}
}

func read(path, key string) exchange {
	return exchange{line: "GET " + path, headers: []string{"x-functions-key: " + key}}
}

// TestKills kills the handler twice during requests, which the host survives, and then the host in both ways. Requests
// without a body are repeated at the next handler; an acknowledged start with a body has its orchestration.
func TestKills(t *testing.T) {
	testenv.RealHost(t)
	a := app{dist: stage(t), account: storage(t), key: newKey(), id: "kills"}
	reschedule(t, a.dist, "*-timer", newYear)
	h := startReal(t, a)
	address := strings.TrimPrefix(h.url, "http://")

	const clients, each = 4, 24
	ids := make([]string, clients*each)
	for i := range ids {
		ids[i] = "hmac-" + uuid.NewString()
	}
	progress := make(chan int, len(ids))
	var work sync.WaitGroup
	for client := range clients {
		work.Go(func() {
			for _, id := range ids[client*each : (client+1)*each] {
				startOnce(t, address, id, a.key)
				if got, err := send(address, read("/api/orchestrations/"+id, a.key)); err != nil || got.status != http.StatusOK {
					t.Errorf("read of %s: status %d, %v", id, got.status, err)
				}
				progress <- 1
			}
		})
	}
	for done := 1; done <= len(ids); done++ {
		<-progress
		if done == len(ids)/3 || done == 2*len(ids)/3 {
			if err := h.killHandler(); err != nil {
				t.Error(err)
			}
		}
	}
	work.Wait()
	if n := strings.Count(h.said(t), `"msg":"listening"`); n != 3 {
		t.Errorf("%d handlers have listened, want 3", n)
	}
	handler := h.handler()
	h.kill(t)
	testenv.Until(t, "the handler is gone with its host", func() bool { return !alive(handler) })

	h = startReal(t, a)
	address = strings.TrimPrefix(h.url, "http://")
	checkAll(t, address, a.key, ids)
	handler = h.handler()
	h.interrupt(t)
	testenv.Until(t, "the handler is gone with its host", func() bool { return !alive(handler) })
}

// startOnce starts an orchestration. The host answers 500 to an interrupted request, and the client repeats it.
func startOnce(t *testing.T, address, id, key string) {
	t.Helper()
	for range 10 {
		got, err := send(address, start(id, key))
		switch {
		case err == nil && (got.status == http.StatusAccepted || got.status == http.StatusCreated || got.status == http.StatusOK):
			return
		case err == nil && got.status != http.StatusInternalServerError && got.status != http.StatusServiceUnavailable:
			t.Errorf("start of %s: status %d: %s", id, got.status, got.body)
			return
		}
	}
	t.Errorf("start of %s: ten failures", id)
}

// checkAll finds these orchestrations.
func checkAll(t *testing.T, address, key string, ids []string) {
	t.Helper()
	for _, id := range ids {
		if got, err := send(address, read("/api/orchestrations/"+id, key)); err != nil || got.status != http.StatusOK {
			t.Errorf("%s: status %d, %v", id, got.status, err)
		}
	}
}
