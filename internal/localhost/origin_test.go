package localhost

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Requests that a foreign web page makes a browser send reach neither a function nor the admin endpoints, with a key or
// without.
func TestRequestsOfOtherOrigins(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.function(t, "hello", httpBindings("hello")...)
	a.manual(t, "good")
	host, _, _ := a.start(t)
	port := fmt.Sprint(host.port)
	for name, test := range map[string]struct {
		header []string
		want   int
	}{
		"by its address":               {nil, http.StatusTeapot},
		"by its name":                  {[]string{"Host", "localhost:" + port}, http.StatusTeapot},
		"its own page":                 {[]string{"Origin", "http://127.0.0.1:" + port}, http.StatusTeapot},
		"its own page by another name": {[]string{"Host", "127.0.0.1:" + port, "Origin", "http://localhost:" + port}, http.StatusTeapot},

		"rebound name":                    {[]string{"Host", "evil.example:" + port}, http.StatusForbidden},
		"rebound name with its origin":    {[]string{"Host", "evil.example:" + port, "Origin", "http://evil.example:" + port}, http.StatusForbidden},
		"name below localhost":            {[]string{"Host", "evil.localhost:" + port}, http.StatusForbidden},
		"name that begins like localhost": {[]string{"Host", "localhost.evil.example:" + port}, http.StatusForbidden},
		"no port":                         {[]string{"Host", "127.0.0.1"}, http.StatusForbidden},
		"another port":                    {[]string{"Host", "127.0.0.1:1"}, http.StatusForbidden},
		"another loopback address":        {[]string{"Host", "127.0.0.2:" + port}, http.StatusForbidden},
		"forwarded host is no host":       {[]string{"Host", "evil.example:" + port, "X-Forwarded-Host", "127.0.0.1:" + port}, http.StatusForbidden},

		"page of another site":       {[]string{"Origin", "https://evil.example"}, http.StatusForbidden},
		"page of another port":       {[]string{"Origin", "http://127.0.0.1:1"}, http.StatusForbidden},
		"page by https":              {[]string{"Origin", "https://127.0.0.1:" + port}, http.StatusForbidden},
		"page without an origin":     {[]string{"Origin", "null"}, http.StatusForbidden},
		"empty origin":               {[]string{"Origin", ""}, http.StatusForbidden},
		"origin with a user":         {[]string{"Origin", "http://evil.example@127.0.0.1:" + port}, http.StatusForbidden},
		"a second origin is another": {[]string{"Origin", "http://127.0.0.1:" + port, "Origin", "https://evil.example"}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			response, text := request(t, http.MethodPost, host.URL()+"/api/hello", strings.NewReader(""), test.header...)
			if response.StatusCode != test.want {
				t.Errorf("function: %d %s, want %d", response.StatusCode, text, test.want)
			}
			if test.want == http.StatusTeapot {
				if i := a.next(t); i.Function != "hello" {
					t.Errorf("invocation %+v", i)
				}
				return
			}
			for _, path := range []string{"/admin/functions/good", "/"} {
				if response, text := request(t, http.MethodPost, host.URL()+path, strings.NewReader(`{"input":""}`), test.header...); response.StatusCode != test.want {
					t.Errorf("%s: %d %s, want %d", path, response.StatusCode, text, test.want)
				}
			}
		})
	}
	select {
	case i := <-a.invocations:
		t.Errorf("function %s ran for another origin", i.Function)
	default:
	}
}

// The handler knows the key of its own host only.
func TestHandlerKnowsTheKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"the-key": "the-key", "": ""} {
		h := &Host{config: Config{FunctionKey: key}, env: environment{localKeyVariable: "another"}}
		if got, there := h.childEnvironment()[localKeyVariable]; got != want || there != (want != "") {
			t.Errorf("with the key %q it finds %q", key, got)
		}
	}
}
