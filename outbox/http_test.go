package outbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/vibedata/roundhouse/internal/testenv"
)

const (
	eventKey = "3e1c0f3a-8d5b-8f00-9a11-2b7c5d9e0f42"
	trace    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

func exampleEvent() Event {
	return Event{
		ID: "row-1", TenantID: "tenant-1", Type: "instance.rotated", Key: uuid.MustParse(eventKey),
		Payload:   json.RawMessage(`{"big":12345678901234567890,"html":"<a&b>"}`),
		CreatedAt: time.Date(2026, 11, 21, 10, 30, 0, 120_000_000, time.FixedZone("", 3600)),
		OrderKey:  "o", CorrelationID: "c-1", TraceParent: trace, Attempt: 1,
	}
}

// received is one request as received by a destination.
type received struct {
	header http.Header
	body   string
	proto  string
}

// sink is a server that records requests and answers them by its handler, 200 without one.
type sink struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
	opened   atomic.Int64
}

func newSink(t *testing.T, secure bool, answer http.HandlerFunc) *sink {
	t.Helper()
	d := &sink{}
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		d.mu.Lock()
		d.requests = append(d.requests, received{r.Header.Clone(), string(body), r.Proto})
		d.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	d.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			d.opened.Add(1)
		}
	}
	d.Config.ErrorLog = quiet()
	if secure {
		d.EnableHTTP2 = true
		d.StartTLS()
	} else {
		d.Start()
	}
	t.Cleanup(d.Close)
	return d
}

func (d *sink) seen() []received {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]received(nil), d.requests...)
}

// newTransport returns a transport to a loopback URL.
func newTransport(t *testing.T, url string, change func(c *HTTPConfig)) *HTTP {
	t.Helper()
	c := HTTPConfig{URL: url, Source: "https://roundhouse.example/{tenant}", AllowPlaintext: true, Allow: []string{"127.0.0.0/8"}}
	if change != nil {
		change(&c)
	}
	h := testenv.Must(NewHTTP(c))(t)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// failure returns the DeliveryError of a delivery that must fail.
func failure(t *testing.T, err error) *DeliveryError {
	t.Helper()
	var out *DeliveryError
	if !errors.As(err, &out) {
		t.Fatalf("got %v, want a DeliveryError", err)
	}
	return out
}

// delivered returns an event as received by a destination.
func delivered(t *testing.T, e Event, change func(c *HTTPConfig)) received {
	t.Helper()
	d := newSink(t, false, nil)
	testenv.OK(t, newTransport(t, d.URL+"/hook?code=1", change).Deliver(t.Context(), e))
	return d.seen()[0]
}

func TestHTTPBinaryMode(t *testing.T) {
	t.Parallel()
	e := exampleEvent()
	want := http.Header{
		"Ce-Specversion": {"1.0"}, "Ce-Id": {eventKey}, "Ce-Source": {"https://roundhouse.example/tenant-1"},
		"Ce-Type": {"instance.rotated"}, "Ce-Subject": {"tenant-1"}, "Ce-Time": {"2026-11-21T09:30:00.12Z"},
		"Ce-Tenantid": {"tenant-1"}, "Ce-Correlationid": {"c-1"}, "Ce-Traceparent": {trace}, "Traceparent": {trace},
		"Content-Type": {"application/json"}, "Content-Length": {fmt.Sprint(len(e.Payload))},
		"Idempotency-Key": {eventKey}, "User-Agent": {"roundhouse-outbox"},
	}
	got := delivered(t, e, nil)
	testenv.Equal(t, "headers", want, got.header)
	testenv.Equal(t, "body", string(e.Payload), got.body)
}

func TestHTTPBinaryModeEncodesHeaders(t *testing.T) {
	t.Parallel()
	e := exampleEvent()
	e.Type, e.TenantID, e.TraceParent, e.CorrelationID, e.Payload = "Euro € \U0001F600", "a/\"%\r\nx: y", "broken", "", nil
	want := http.Header{
		"Ce-Specversion": {"1.0"}, "Ce-Id": {eventKey}, "Ce-Source": {"https://roundhouse.example/a%252F%2522%2525%250D%250Ax:%2520y"},
		"Ce-Type": {"Euro%20%E2%82%AC%20%F0%9F%98%80"}, "Ce-Time": {"2026-11-21T09:30:00.12Z"},
		"Ce-Subject": {"Euro%20%E2%82%AC%20%F0%9F%98%80%20of%20a/%22%25%0D%0Ax:%20y"}, "Ce-Tenantid": {"a/%22%25%0D%0Ax:%20y"},
		"Content-Length": {"0"}, "Idempotency-Key": {eventKey}, "User-Agent": {"roundhouse-outbox"},
	}
	got := delivered(t, e, func(c *HTTPConfig) { c.Subject = "{type} of {tenant}" })
	testenv.Equal(t, "headers", want, got.header)
}

func TestHTTPStructuredMode(t *testing.T) {
	t.Parallel()
	got := delivered(t, exampleEvent(), func(c *HTTPConfig) { c.Structured = true })
	if ct := got.header.Get("Content-Type"); ct != "application/cloudevents+json; charset=utf-8" {
		t.Errorf("content type is %q", ct)
	}
	if got.header.Get("Idempotency-Key") != eventKey || got.header.Get("ce-id") != "" {
		t.Errorf("headers are %v", got.header)
	}
	want := `{"specversion":"1.0","id":"` + eventKey + `","source":"https://roundhouse.example/tenant-1","type":"instance.rotated",` +
		`"subject":"tenant-1","time":"2026-11-21T09:30:00.12Z","datacontenttype":"application/json","tenantid":"tenant-1",` +
		`"correlationid":"c-1","traceparent":"` + trace + `","data":{"big":12345678901234567890,"html":"<a&b>"}}`
	testenv.Equal(t, "body", want, got.body)
}

func TestHTTPRefusesEvents(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(e *Event){
		"no type":   func(e *Event) { e.Type = "" },
		"no key":    func(e *Event) { e.Key = uuid.Nil },
		"not JSON":  func(e *Event) { e.Payload = json.RawMessage("{") },
		"not UTF-8": func(e *Event) { e.Payload = json.RawMessage("\"\xff\"") },
	} {
		d := newSink(t, false, nil)
		e := exampleEvent()
		change(&e)
		if got := failure(t, newTransport(t, d.URL, nil).Deliver(t.Context(), e)); !got.Permanent || len(d.seen()) > 0 {
			t.Errorf("%s: %v, permanent %v, %d requests", name, got, got.Permanent, len(d.seen()))
		}
	}
}

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		status     int
		retryAfter string
		ok         bool
		permanent  bool
		wait       time.Duration
	}{
		{status: 200, ok: true}, {status: 202, ok: true}, {status: 204, ok: true}, {status: 299, ok: true},
		{status: 300, permanent: true}, {status: 304, permanent: true},
		{status: 400, permanent: true}, {status: 401, permanent: true}, {status: 404, permanent: true, retryAfter: "9"},
		{status: 409, permanent: true}, {status: 410, permanent: true}, {status: 413, permanent: true}, {status: 422, permanent: true},
		{status: 408}, {status: 425}, {status: 429},
		{status: 429, retryAfter: "17", wait: 17 * time.Second},
		{status: 429, retryAfter: in(90 * time.Second), wait: 90 * time.Second},
		{status: 408, retryAfter: "1", wait: time.Second},
		{status: 500}, {status: 502}, {status: 504}, {status: 599}, {status: 999},
		{status: 503, retryAfter: "7200", wait: time.Hour},
		{status: 503, retryAfter: in(-time.Hour)},
		{status: 503, retryAfter: "soon"},
		{status: 500, retryAfter: "5", wait: 5 * time.Second},
		{status: 501, permanent: true}, {status: 505, permanent: true}, {status: 507},
	} {
		t.Run(fmt.Sprint(c.status, c.retryAfter), func(t *testing.T) {
			t.Parallel()
			d := newSink(t, false, func(w http.ResponseWriter, _ *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, "the \x1b[31mreason\x00\r\nline\u202e two")
			})
			err := newTransport(t, d.URL, func(c *HTTPConfig) { c.Now = func() time.Time { return now } }).Deliver(t.Context(), exampleEvent())
			if c.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			got := failure(t, err)
			if got.Permanent != c.permanent || got.Status != c.status || got.RetryAfter != c.wait {
				t.Errorf("got permanent %v, status %d, retry after %v", got.Permanent, got.Status, got.RetryAfter)
			}
			if !strings.Contains(err.Error(), d.Listener.Addr().String()) || c.status >= 400 && !strings.HasSuffix(err.Error(), ": the [31mreason line two") {
				t.Errorf("text is %q", err)
			}
		})
	}
}

func TestHTTPRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	target := newSink(t, false, nil)
	for name, c := range map[string]struct{ location, want string }{
		"elsewhere": {target.URL + "/s3cret?code=s3cret", target.Listener.Addr().String()},
		"same host": {"/s3cret", "it leads to 127.0.0.1:"},
		"broken":    {"https://%zzs3cret/", "an invalid URL"},
		"none":      {"", "nowhere"},
		"with user": {"https://s3cret:s3cret@other.example/", "other.example:"},
		"no host":   {"mailto:s3cret", "an invalid URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newSink(t, false, func(w http.ResponseWriter, _ *http.Request) {
				if c.location != "" {
					w.Header().Set("Location", c.location)
				}
				w.WriteHeader(http.StatusTemporaryRedirect)
			})
			err := newTransport(t, d.URL, nil).Deliver(t.Context(), exampleEvent())
			got := failure(t, err)
			if !got.Permanent || got.Status != 307 || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, permanent %v", err, got.Permanent)
			}
			if len(d.seen()) != 1 || len(target.seen()) != 0 {
				t.Errorf("%d and %d requests", len(d.seen()), len(target.seen()))
			}
		})
	}
}

func TestHTTPEveryAttemptHasTheSameKey(t *testing.T) {
	t.Parallel()
	old, fresh := signingKey("v1", 1), signingKey("v2", 2)
	var now atomic.Int64
	now.Store(exampleTime)
	d := newSink(t, false, func(w http.ResponseWriter, _ *http.Request) {
		if now.Load() < exampleTime+2*3600 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	h := newTransport(t, d.URL, func(c *HTTPConfig) {
		c.Now = func() time.Time { return time.Unix(now.Load(), 0) }
		c.Keys = func(context.Context) ([]SigningKey, error) { return []SigningKey{fresh, old}, nil }
	})
	e := exampleEvent()
	for e.Attempt = 1; e.Attempt <= 3; e.Attempt++ {
		if err := h.Deliver(t.Context(), e); (err == nil) != (e.Attempt == 3) {
			t.Fatalf("attempt %d: %v", e.Attempt, err)
		}
		now.Add(3600)
	}
	for i, r := range d.seen() {
		for _, name := range []string{"Idempotency-Key", "ce-id", "webhook-id"} {
			if got := r.header.Get(name); got != eventKey {
				t.Errorf("attempt %d: %s is %q", i+1, name, got)
			}
		}
		if got := r.header.Get("webhook-key-id"); got != "v2 v1" {
			t.Errorf("attempt %d: key ids are %q", i+1, got)
		}
		at := time.Unix(exampleTime+int64(i)*3600, 0)
		for _, k := range []SigningKey{old, fresh} {
			if id, err := VerifySignature(r.header, []byte(r.body), []SigningKey{k}, at, time.Second); id != k.ID {
				t.Errorf("attempt %d: %q, %v", i+1, id, err)
			}
		}
	}
}

func TestHTTPKeysThatCannotBeHad(t *testing.T) {
	t.Parallel()
	cause := errors.New("vault is away")
	for name, keys := range map[string]SigningKeys{
		"lookup fails": func(context.Context) ([]SigningKey, error) { return nil, cause },
		"none":         func(context.Context) ([]SigningKey, error) { return nil, nil },
		"weak": func(context.Context) ([]SigningKey, error) {
			return []SigningKey{{ID: "k", Secret: []byte("s3cret")}}, nil
		},
	} {
		d := newSink(t, false, nil)
		err := newTransport(t, d.URL, func(c *HTTPConfig) { c.Keys = keys }).Deliver(t.Context(), exampleEvent())
		got := failure(t, err)
		if got.Permanent || strings.Contains(err.Error(), "s3cret") || len(d.seen()) != 0 || errors.Is(err, cause) != (name == "lookup fails") {
			t.Errorf("%s: %v, permanent %v, %d requests", name, err, got.Permanent, len(d.seen()))
		}
	}
}

func TestHTTPReusesConnections(t *testing.T) {
	t.Parallel()
	for proto, secure := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			answers := []int{200, 204, 500, 404, 302}
			var n atomic.Int64
			d := newSink(t, secure, func(w http.ResponseWriter, _ *http.Request) {
				status := answers[int(n.Add(1))%len(answers)]
				w.WriteHeader(status)
				if status != 204 {
					_, _ = io.WriteString(w, strings.Repeat("x", 1000))
				}
			})
			h := newTransport(t, d.URL, func(c *HTTPConfig) { c.RootCAs = rootsOf(d.Server) })
			for range 20 {
				_ = h.Deliver(t.Context(), exampleEvent())
			}
			seen := d.seen()
			if conns := d.opened.Load(); len(seen) != 20 || conns != 1 || seen[0].proto != proto {
				t.Errorf("%d requests over %d connections of %s", len(seen), conns, seen[0].proto)
			}
		})
	}
}

func rootsOf(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	if c := s.Certificate(); c != nil {
		pool.AddCert(c)
	}
	return pool
}

func TestHTTPRepeatsOnADeadConnection(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	d := newSink(t, false, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
	})
	h := newTransport(t, d.URL, nil)
	for range 2 {
		testenv.OK(t, h.Deliver(t.Context(), exampleEvent()))
	}
	seen := d.seen()
	if len(seen) != 3 || d.opened.Load() != 2 || seen[1].header.Get("Idempotency-Key") != seen[2].header.Get("Idempotency-Key") {
		t.Errorf("%d requests over %d connections", len(seen), d.opened.Load())
	}
}

func TestHTTPBodiesAreBounded(t *testing.T) {
	t.Parallel()
	endless := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("é", 4096)); err != nil {
					return
				}
			}
		}
	}
	if err := newTransport(t, newSink(t, false, endless(200)).URL, nil).Deliver(t.Context(), exampleEvent()); err != nil {
		t.Errorf("an endless body after 200: %v", err)
	}
	got := failure(t, newTransport(t, newSink(t, false, endless(500)).URL, nil).Deliver(t.Context(), exampleEvent()))
	if n := len(got.Err.Error()); got.Status != 500 || n < 4000 || n > 4200 {
		t.Errorf("status %d, a text of %d bytes", got.Status, n)
	}
}

// rawServer passes every connection, once a request's head has arrived, to answer and then closes it.
func rawServer(t *testing.T, answer func(c *net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer func() { _ = c.Close() }()
				if _, err := c.Read(make([]byte, 4096)); err == nil {
					answer(c.(*net.TCPConn))
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		group.Wait()
	})
	return "http://" + l.Addr().String()
}

// until blocks while the other side keeps the connection.
func until(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func TestHTTPBrokenAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(c *net.TCPConn)
		status int
	}{
		"closed": {answer: func(*net.TCPConn) {}},
		"reset":  {answer: func(c *net.TCPConn) { _ = c.SetLinger(0) }},
		"garbage": {answer: func(c *net.TCPConn) {
			_, _ = io.WriteString(c, strings.Repeat("\x00\x1b[31mgarb\u202eage", 200)+"\r\n\r\n")
		}},
		"half an answer": {answer: func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le") }},
		"huge headers": {answer: func(c *net.TCPConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: "+strings.Repeat("x", 2*maxAnswerHeader)+"\r\n\r\n")
		}},
		"switching protocols": {answer: func(c *net.TCPConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			until(c)
		}, status: 101},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTransport(t, rawServer(t, c.answer)+"/path?code=s3cret", func(x *HTTPConfig) {
				x.Timeout = time.Minute // they must not need it
			})
			checkBroken(t, h.Deliver(t.Context(), exampleEvent()), c.status, false)
		})
	}
}

// checkBroken checks a failure that another attempt may fix: its status, whether it is a timeout, and that its text has
// neither a secret nor characters that could harm a log.
func checkBroken(t *testing.T, err error, status int, late bool) {
	t.Helper()
	got := failure(t, err)
	if got.Permanent || got.Status != status || errors.Is(err, context.DeadlineExceeded) != late {
		t.Errorf("got %v, permanent %v, status %d", err, got.Permanent, got.Status)
	}
	if text := err.Error(); strings.Contains(text, "s3cret") || strings.ContainsAny(text, "\x00\x1b\r\n\u202e") || len(text) > 2*maxCause ||
		strings.Contains(text, "no answer in time") != late {
		t.Errorf("text is %q", text)
	}
}

// Unfinished answers wait for the timeout, in the time of a synctest bubble, and so over a pipe.
func TestHTTPSlowAnswers(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	for name, c := range map[string]struct {
		answer string
		check  func(t *testing.T, err error)
	}{
		"silence":      {"", func(t *testing.T, err error) { checkBroken(t, err, 0, true) }},
		"slow headers": {"HTTP/1.1 200 OK\r\nX-A: ", func(t *testing.T, err error) { checkBroken(t, err, 0, true) }},
		"slow text of an error": {"HTTP/1.1 500 Broken\r\nContent-Length: 100\r\n\r\nhalf",
			func(t *testing.T, err error) { checkBroken(t, err, 500, false) }},
		"slow body of a success": {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", func(t *testing.T, err error) {
			if err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newTransport(t, "http://127.0.0.1/path?code=s3cret", func(x *HTTPConfig) { x.Timeout = timeout })
				h.pool.DialContext = func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					go func() {
						defer server.Close()
						if _, err := server.Read(make([]byte, 4096)); err == nil {
							_, _ = io.WriteString(server, c.answer)
							until(server)
						}
					}()
					return client, nil
				}
				began := time.Now()
				c.check(t, h.Deliver(t.Context(), exampleEvent()))
				if took := time.Since(began); took > timeout {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestHTTPCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	h := newTransport(t, rawServer(t, func(c *net.TCPConn) { cancel(); until(c) }), nil)
	err := h.Deliver(ctx, exampleEvent())
	if got := failure(t, err); got.Permanent || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, permanent %v", err, got.Permanent)
	}
}

func TestHTTPNobodyListens(t *testing.T) {
	t.Parallel()
	if got := failure(t, newTransport(t, fmt.Sprint("http://127.0.0.1:", testenv.Port(t)), nil).Deliver(t.Context(), exampleEvent())); got.Permanent || got.Status != 0 {
		t.Errorf("got %v, permanent %v", got, got.Permanent)
	}
}

func TestHTTPOverTLS(t *testing.T) {
	t.Parallel()
	good := newSink(t, true, nil)
	if err := newTransport(t, good.URL, func(c *HTTPConfig) { c.RootCAs, c.AllowPlaintext = rootsOf(good.Server), false }).Deliver(t.Context(), exampleEvent()); err != nil {
		t.Error(err)
	}
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.Config.ErrorLog = quiet()
	old.StartTLS()
	t.Cleanup(old.Close)
	for name, c := range map[string]struct {
		url  string
		pool *x509.CertPool
		want string
	}{
		"unknown authority": {good.URL, x509.NewCertPool(), "unknown authority"},
		"TLS 1.1":           {old.URL, rootsOf(old), "version"},
		"other host":        {strings.Replace(good.URL, "127.0.0.1", "hooks.example", 1), rootsOf(good.Server), "not hooks.example"},
	} {
		err := newTransport(t, c.url, func(x *HTTPConfig) {
			x.RootCAs, x.Resolver = c.pool, startDNS(t, []string{"127.0.0.1"})
		}).Deliver(t.Context(), exampleEvent())
		if got := failure(t, err); got.Permanent || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, permanent %v", name, err, got.Permanent)
		}
	}
}

func TestHTTPPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	d := newSink(t, false, nil)
	_, port, err := net.SplitHostPort(d.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		allow   []string
		answers [][]string
		want    []bool
	}{
		"private":        {answers: [][]string{{"10.0.0.1"}}, want: []bool{false}},
		"metadata":       {answers: [][]string{{"169.254.169.254"}}, want: []bool{false}, allow: []string{"hooks.example"}},
		"loopback":       {answers: [][]string{{"127.0.0.1"}}, want: []bool{false}},
		"unspecified":    {answers: [][]string{{"0.0.0.0"}}, want: []bool{false}},
		"all of several": {answers: [][]string{{"10.0.0.1", "127.0.0.1"}}, want: []bool{false}},
		"host allowed":   {answers: [][]string{{"127.0.0.1"}}, want: []bool{true}, allow: []string{"hooks.example"}},
		"address allowed, the other is not tried": {answers: [][]string{{"10.0.0.1", "127.0.0.1"}}, want: []bool{true}, allow: []string{"127.0.0.1"}},
		"rebinding": {answers: [][]string{{"127.0.0.1"}, {"127.0.0.2"}}, want: []bool{true, false}, allow: []string{"127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTransport(t, "http://hooks.example:"+port, func(x *HTTPConfig) { x.Allow, x.Resolver = c.allow, startDNS(t, c.answers...) })
			for i, want := range c.want {
				err := h.Deliver(t.Context(), exampleEvent())
				if (err == nil) != want {
					t.Fatalf("delivery %d: %v", i, err)
				}
				// The next delivery looks the host up again.
				_ = h.Close()
				if want {
					continue
				}
				if got := failure(t, err); !got.Permanent || !errors.Is(err, ErrDestination) || !strings.Contains(err.Error(), "hooks.example") {
					t.Errorf("delivery %d: %v, permanent %v", i, err, got.Permanent)
				}
			}
		})
	}
}

func TestHTTPAllowedAddressThatIsDownIsTransient(t *testing.T) {
	t.Parallel()
	h := newTransport(t, fmt.Sprint("http://hooks.example:", testenv.Port(t)), func(c *HTTPConfig) {
		c.Allow, c.Resolver = []string{"127.0.0.1"}, startDNS(t, []string{"127.0.0.2", "127.0.0.1"})
	})
	err := h.Deliver(t.Context(), exampleEvent())
	if got := failure(t, err); got.Permanent || errors.Is(err, ErrDestination) {
		t.Errorf("got %v, permanent %v", err, got.Permanent)
	}
}

func TestHTTPUsesNoProxy(t *testing.T) {
	t.Parallel()
	if h := newTransport(t, "https://example.com", nil); h.pool.Proxy != nil {
		t.Error("a proxy is looked up")
	}
}

func TestHTTPConfigIsValidated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config HTTPConfig
		wants  []string
	}{
		"zero":         {HTTPConfig{}, []string{"absolute URL", "source"}},
		"negative":     {HTTPConfig{URL: "https://x.example", Source: "/s", Timeout: -1, MaxRetryAfter: -1}, []string{"-1ns"}},
		"allow":        {HTTPConfig{URL: "https://x.example", Source: "/s", Allow: []string{"*"}}, []string{`"*"`}},
		"placeholders": {HTTPConfig{URL: "https://x.example", Source: "/{id}", Subject: "{key}"}, []string{`source "/{id}"`, `subject "{key}"`}},
		"source":       {HTTPConfig{URL: "https://x.example", Source: "a b"}, []string{`"a b"`}},
	} {
		_, err := NewHTTP(c.config)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not name %s", name, err, want)
			}
		}
	}
	h, err := NewHTTP(HTTPConfig{URL: "https://x.example", Source: "urn:roundhouse"})
	if err != nil || h.timeout != 10*time.Second || h.maxRetryAfter != time.Hour {
		t.Errorf("defaults: %v, %v", h, err)
	}
}
