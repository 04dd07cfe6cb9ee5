package handler_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/handler"
)

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// No answer and no log line shows a secret in the name of an event or in a path.
func TestSecretsInNamesAndPaths(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	var log lockedBuffer
	m := newMarketWith(t, "", func(c *handler.Config) { c.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	send := func(method, path, body string) {
		t.Helper()
		if status, answer := m.Do(method, path, body, m.home.Sign); status >= 500 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	send(http.MethodPost, "/api/orchestrations/shop-red-waits/events/"+secret, `1`)
	send(http.MethodPost, "/api/runtime/webhooks/durabletask/instances/shop-red-waits/raiseEvent/"+secret, `1`)
	send(http.MethodPost, "/api/orchestrations/"+secret+"/terminate", `{"reason":"`+secret+`"}`)
	send(http.MethodPost, "/api/dlq/shop/"+secret+"/retry", `{}`)
	if status, _ := m.Do(http.MethodPost, "/api/orchestrations/"+secret+"/terminate", `{}`, m.blue.Sign); status != http.StatusNotFound {
		t.Error(status)
	}
	m.Deliver()
	for _, path := range []string{"/api/audit", "/api/audit?target=orchestrations/shop-red-waits", "/api/timeline/red-waits", "/api/orchestrations/shop-red-waits", "/api/orchestrations/shop-red-waits/rounds",
		"/api/orchestrations/shop-red-waits/history", "/api/runtime/webhooks/durabletask/instances/shop-red-waits?showHistory=true&showHistoryOutput=true", "/api/console/timeline?correlationId=red-waits",
		"/api/console/orchestrations/shop-red-waits", "/api/console/audit"} {
		if status, answer := m.get(t, path, m.home); status >= 300 || strings.Contains(answer, secret) {
			at := max(0, strings.Index(answer, secret)-100)
			t.Errorf("%s: %d %.300s", path, status, answer[at:])
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log has it: %s", log.String())
	}
}
