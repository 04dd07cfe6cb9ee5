package localhost

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// webApp has one plain http function, with requests passed on in one of the two ways.
func webApp(t *testing.T, way string) (*app, *Host) {
	t.Helper()
	a := newApp(t)
	a.host["customHandler"].(map[string]any)[way] = true
	a.function(t, "hello", httpBindings("hello/{*rest}", "get", "POST")...)
	host, _, _ := a.start(t)
	return a, host
}

const (
	forwarding = "enableForwardingHttpRequest"
	proxying   = "enableProxyingHttpRequest" // on top of forwarding, which newApp turns on
)

// seen is a forwarded request as the handler sees it.
type seen struct {
	URI, Host, Body string
	Header          http.Header
}

func TestHandedOverRequest(t *testing.T) {
	t.Parallel()
	for way, want := range map[string]struct {
		uri, host, agent, forwardedFor, forwardedHost, invocation string
	}{
		forwarding: {"/API/Hello/a%20b/7?code=k&n=1%2C2", "client", "client/1 Azure-Functions-Host/4.1045.200.25556", "203.0.113.9", "", ""},
		proxying:   {"/API/Hello/a%20b/7?n=1&n=2&code=k", "", "client/1", "127.0.0.1", "client", "same"},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			a, host := webApp(t, way)
			response, text := request(t, http.MethodPost, host.URL()+"/API/Hello/a%20b/7?n=1&n=2&code=k", strings.NewReader("body"),
				"Host", client(host), "User-Agent", "client/1", "X-Forwarded-For", "203.0.113.9", "Cookie", "k=v", "x-functions-key", "k",
				"X-Azure-Functions-InvocationId", "made-up")
			if response.StatusCode != http.StatusTeapot {
				t.Fatalf("status %d: %s", response.StatusCode, text)
			}
			testenv.Equal(t, "", []string{"a=1", "b=2"}, response.Header.Values("Set-Cookie"))
			var got seen
			testenv.OK(t, json.Unmarshal([]byte(text), &got))
			want.forwardedHost = strings.Replace(want.forwardedHost, "client", client(host), 1)
			if want.host == "client" {
				want.host = client(host)
			} else {
				want.host = strings.TrimPrefix(handlerURL(host.supervisor.port), "http://")
			}
			i := a.next(t)
			if want.invocation != "" {
				want.invocation = i.ID
			}
			for what, pair := range map[string][2]string{
				"uri": {got.URI, want.uri}, "host": {got.Host, want.host}, "body": {got.Body, "body"},
				"User-Agent":                     {got.Header.Get("User-Agent"), want.agent},
				"X-Forwarded-For":                {got.Header.Get("X-Forwarded-For"), want.forwardedFor},
				"X-Forwarded-Host":               {got.Header.Get("X-Forwarded-Host"), want.forwardedHost},
				"X-Ms-Invocation-Id":             {got.Header.Get("X-Ms-Invocation-Id"), want.invocation},
				"X-Azure-Functions-InvocationId": {got.Header.Get("X-Azure-Functions-InvocationId"), i.ID},
				"X-Azure-Functions-HostVersion":  {got.Header.Get("X-Azure-Functions-HostVersion"), hostVersion},
				"Cookie":                         {got.Header.Get("Cookie"), "k=v"},
				"X-Functions-Key":                {got.Header.Get("X-Functions-Key"), "k"},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
				}
			}
			if ids := got.Header["X-Azure-Functions-Invocationid"]; !slices.Equal(ids, []string{i.ID}) {
				t.Errorf("invocation ids %q, want %q alone", ids, i.ID)
			}
			if i.Outcome != Succeeded || i.Trigger != "httpTrigger" {
				t.Errorf("invocation %+v", i)
			}
		})
	}
}

// client returns the client's name of a host: not the one in [Host.URL].
func client(h *Host) string { return fmt.Sprintf("LocalHost:%d", h.port) }

// TestHandedOverAnswers: answers that break the JSON protocol are valid here.
func TestHandedOverAnswers(t *testing.T) {
	t.Parallel()
	for _, way := range []string{forwarding, proxying} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			a, host := webApp(t, way)
			for _, test := range []struct {
				method, path string
				status       int
				invoked      bool
			}{
				{"GET", "/api/hello/x?do=empty", 204, true},
				{"GET", "/api/hello?do=redirect", 302, true},
				{"POST", "/api/hello?do=reset", 500, true},
				{"PUT", "/api/hello/x", 404, false},
				{"HEAD", "/api/hello/x", 404, false},
				{"GET", "/api/other", 404, false},
			} {
				response, text := request(t, test.method, host.URL()+test.path, nil)
				if response.StatusCode != test.status {
					t.Errorf("%s %s: %d %s, want %d", test.method, test.path, response.StatusCode, text, test.status)
				}
				if test.invoked {
					if i := a.next(t); (i.Outcome == Succeeded) != (test.status != 500) {
						t.Errorf("%s %s: %+v", test.method, test.path, i)
					}
				}
			}
		})
	}
}

func TestChunkedRequest(t *testing.T) {
	t.Parallel()
	for way, want := range map[string]int{forwarding: http.StatusInternalServerError, proxying: http.StatusTeapot} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			_, host := webApp(t, way)
			response, text := request(t, http.MethodPost, host.URL()+"/api/hello", io.MultiReader(strings.NewReader("chunks")))
			if response.StatusCode != want || want == http.StatusTeapot && !strings.Contains(text, `"body":"chunks"`) {
				t.Errorf("status %d: %s", response.StatusCode, text)
			}
		})
	}
}

func TestForwardedGETIsRepeatedWhenItBreaks(t *testing.T) {
	t.Parallel()
	a, host := webApp(t, forwarding)
	if response, _ := request(t, http.MethodGet, host.URL()+"/api/hello?do=reset", nil); response.StatusCode != http.StatusInternalServerError {
		t.Errorf("status %d", response.StatusCode)
	}
	a.output.wait(t, "handler resets", forwardTries)
	if i := a.next(t); i.Err == nil {
		t.Error("the invocation succeeded")
	}
}

func TestProxiedBodyIsStreamed(t *testing.T) {
	t.Parallel()
	_, host := webApp(t, proxying)
	reader, writer := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, host.URL()+"/api/hello?do=stream", reader)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r) // answers before the body has ended
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	testenv.Must(writer.Write([]byte("first")))(t)
	first := make([]byte, 5)
	if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "first" {
		t.Errorf("%q, %v before the body ended", first, err)
	}
	_ = writer.Close()
	if rest, err := io.ReadAll(response.Body); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestProxiedRequestWhileTheHandlerRestarts(t *testing.T) {
	t.Parallel()
	a, host := webApp(t, proxying)
	response, _ := request(t, http.MethodPost, host.URL()+"/api/hello?do=exit", strings.NewReader("body"))
	if response.StatusCode != http.StatusInternalServerError {
		t.Errorf("status %d", response.StatusCode)
	}
	a.next(t)
	a.output.wait(t, "handler starts", 2)
	response, _ = request(t, http.MethodPost, host.URL()+"/api/hello", strings.NewReader("body"))
	if response.StatusCode != http.StatusTeapot {
		t.Errorf("afterwards: status %d", response.StatusCode)
	}
}

func TestAuthorization(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.config.FunctionKey = "the-key"
	for _, level := range []string{"anonymous", "function", "admin"} {
		bindings := httpBindings(level)
		bindings[0]["authLevel"] = level
		bindings[0]["route"] = "by-" + level // the host reserves routes that begin with admin
		a.function(t, level, bindings...)
	}
	host, _, _ := a.start(t)
	for _, test := range []struct {
		level, header, code string
		status              int
	}{
		{"anonymous", "", "", 418}, {"function", "", "", 401}, {"admin", "", "", 401},
		{"function", "the-key", "", 418}, {"function", "", "the-key", 418}, {"function", "wrong", "the-key", 401},
		{"function", "", "the-ke", 401}, {"admin", "the-key", "", 418},
	} {
		response, _ := request(t, http.MethodGet, host.URL()+"/api/by-"+test.level+"?code="+url.QueryEscape(test.code), nil, given("x-functions-key", test.header)...)
		if response.StatusCode != test.status {
			t.Errorf("%+v: status %d", test, response.StatusCode)
		}
	}
}

// TestRequestByTheJSONProtocol covers an http function with another output, whose requests are never passed on as they
// are.
func TestRequestByTheJSONProtocol(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	extra := map[string]any{"type": "queue", "direction": "out", "name": "next", "queueName": "next"}
	a.function(t, "echojson", append(httpBindings("items/{id}"), extra)...)
	a.function(t, "good", append(httpBindings("good"), extra)...)
	a.function(t, "null", append(httpBindings("null"), extra)...)
	host, _, _ := a.start(t)
	response, text := request(t, http.MethodPost, host.URL()+"/api/Items/5?n=1&name=a%20b", strings.NewReader(`{"id":1005}`),
		"Content-Type", "application/json", "User-Agent", "test", "Host", client(host), "Accept-Encoding", "identity")
	if response.StatusCode != http.StatusCreated || response.Header.Get("X-Made") != "yes" || response.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v: %s", response.StatusCode, response.Header, text)
	}
	want := `{"id":"\"5\"","n":"\"1\"","req":{"Url":"http://client/api/Items/5?n=1&name=a%20b","Method":"POST","Query":{"n":"1","name":"a b"},
		"Headers":{"Host":["client"],"Content-Type":["application/json"],"Content-Length":["11"],"User-Agent":["test"],"Accept-Encoding":["identity"]},
		"Params":{"id":"5"},"Body":"{\"id\":1005}",
		"Identities":[{"AuthenticationType":null,"IsAuthenticated":false,"Actor":null,"BootstrapContext":null,"Claims":[],"Label":null,"Name":null,
		"NameClaimType":"http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name","RoleClaimType":"http://schemas.microsoft.com/ws/2008/06/identity/claims/role"}]}}`
	want = strings.ReplaceAll(want, `client`, client(host))
	testenv.Equal(t, "", decoded(t, want), decoded(t, text))
	for path, want := range map[string]int{"/api/good": http.StatusNoContent, "/api/null": http.StatusInternalServerError} {
		if response, _ := request(t, http.MethodGet, host.URL()+path, nil); response.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, response.StatusCode, want)
		}
	}
}
