package realhost

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// TestTablesComeLate starts the app while its tables are unreachable; the host needs no tables. Probes answer, the API
// reports that it is not ready, and neither the handler nor the host ends. The app becomes ready when the tables are
// reachable.
func TestTablesComeLate(t *testing.T) {
	testenv.RealHost(t)
	stored := storage(t)
	port := testenv.Port(t)
	a := app{dist: stage(t), account: azure.EmulatorAccount(portOf(t, stored.BlobEndpoint), portOf(t, stored.QueueEndpoint), port),
		key: newKey(), id: "late", probe: "/api/health/live"}
	reschedule(t, a.dist, "*-timer", newYear)
	h := startReal(t, a)
	address := strings.TrimPrefix(h.url, "http://")
	for path, want := range map[string]int{"/api/health/ready": http.StatusServiceUnavailable, "/api/orchestrations": http.StatusServiceUnavailable} {
		if got, err := send(address, read(path, a.key)); err != nil || got.status != want {
			t.Errorf("%s without tables: status %d, %v, want %d", path, got.status, err, want)
		}
	}
	handler := h.handler()
	forward(t, port, stored.TableEndpoint)
	h.awaitReady(t, "/api/health/ready")
	if got, err := send(address, read("/api/orchestrations", a.key)); err != nil || got.status != http.StatusOK {
		t.Errorf("with tables: status %d, %v", got.status, err)
	}
	if now := h.handler(); now != handler || handler == 0 {
		t.Errorf("the handler was started again: process %d, then %d", handler, now)
	}
}

func portOf(t *testing.T, endpoint string) int {
	t.Helper()
	u := testenv.Must(url.Parse(endpoint))(t)
	port := testenv.Must(strconv.Atoi(u.Port()))(t)
	return port
}

// forward listens on a port, and forwards connections to an endpoint.
func forward(t *testing.T, port int, endpoint string) {
	t.Helper()
	target := testenv.Must(url.Parse(endpoint))(t)
	listener := testenv.Must(net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))(t)
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{Transport: &http.Transport{DisableKeepAlives: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host // links in answers stay right
		}})
	testenv.OK(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
}
