package acceptance

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/testenv"
)

// moment is the point at which a request kills the handler.
type moment string

const (
	before moment = "before" // before storage sees it
	after  moment = "after"  // after storage has carried it out; the answer is lost
)

// proxy forwards requests between the handler and storage, on the wire.
type proxy struct {
	account azure.Account
	kill    func() error

	mu     sync.Mutex
	count  int
	at     int
	moment moment
	dying  int // kills in progress
	refuse func(r *http.Request) bool
}

func newProxy(t *testing.T, storage azure.Account) *proxy {
	t.Helper()
	p := &proxy{}
	p.account = azure.EmulatorAccountNamed(storage.Name, p.serve(t, storage.BlobEndpoint), p.serve(t, storage.QueueEndpoint), p.serve(t, storage.TableEndpoint))
	return p
}

// serve forwards one service and returns the port it listens on.
func (p *proxy) serve(t *testing.T, endpoint string) int {
	t.Helper()
	target := testenv.Must(url.Parse(endpoint))(t)
	transport := &http.Transport{DisableKeepAlives: true}
	quiet := log.New(io.Discard, "", 0) // some tests make storage unavailable
	forward := &httputil.ReverseProxy{Transport: transport, ErrorLog: quiet, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		r.Out.Host = r.In.Host // the signature does not cover it, and links in answers stay right
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse, kill := p.judge(r)
		switch {
		case refuse:
			w.Header().Set("x-ms-error-code", "AuthorizationFailure")
			w.WriteHeader(http.StatusForbidden)
		case kill == before:
			p.murder(t)
			hangUp(w)
		case kill == after:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			p.murder(t)
			hangUp(w)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	n := testenv.Must(strconv.Atoi(port))(t)
	return n
}

func (p *proxy) judge(r *http.Request) (refuse bool, kill moment) {
	aside := beside(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil && p.refuse(r) {
		return true, ""
	}
	if aside {
		return false, ""
	}
	p.count++
	if p.at != 0 && p.count == p.at {
		p.at = 0
		p.dying++
		return false, p.moment
	}
	return false, ""
}

// beside reports whether a request belongs to background work at its own pace: the index of the orchestrations, the
// signs of life of processes (hostLocks), and the outbox's wake-ups and table, except for the transaction that adds an
// event. That is the only one without a deletion.
func beside(r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/$batch") {
		return strings.Contains(r.URL.Path, "/outbox") || strings.Contains(r.URL.Path, "/orchestrationsList") || strings.Contains(r.URL.Path, "/hostLocks")
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && (bytes.Contains(body, []byte("/orchestrationsList(")) || bytes.Contains(body, []byte("/hostLocks(")) ||
		bytes.Contains(body, []byte("/outbox(")) && bytes.Contains(body, []byte("DELETE ")))
}

func (p *proxy) murder(t *testing.T) {
	if err := p.kill(); err != nil {
		t.Errorf("kill the handler: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dying--
}

// quiet reports whether no kill is in progress.
func (p *proxy) quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dying == 0
}

// hangUp breaks the connection without an answer.
func hangUp(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		c.Close()
	}
}

// arm starts counting at zero; the handler dies at the request with this number. 0 only counts.
func (p *proxy) arm(at int, m moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count, p.at, p.moment = 0, at, m
}

func (p *proxy) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// refuseIf makes storage refuse the requests that match accepts; nil refuses none.
func (p *proxy) refuseIf(match func(r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = match
}
