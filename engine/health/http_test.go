package health_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/health"
	"github.com/vibedata/roundhouse/engine/health/healthtest"
)

// wire returns the client over a listening server.
func wire(t *testing.T) (*health.HTTP, *healthtest.Server) {
	t.Helper()
	server, transport := healthtest.Listen(t), &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := health.NewHTTP(server.URL+"/", &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestHTTPReports(t *testing.T) {
	t.Parallel()
	c, server := wire(t)
	for body, want := range map[string]struct {
		code   int
		status health.Status
		err    string
	}{
		`{"status":"pass"}`:             {200, health.Healthy, ""},
		`{"status":"OK"}`:               {200, health.Healthy, ""},
		`{"status":"warn"}`:             {207, health.Degraded, ""},
		`{"status":"down"}`:             {200, health.Unhealthy, ""},
		`{"status":"fail"}`:             {503, health.Unhealthy, ""},
		`{"status":"pass","n":1}`:       {500, health.Unhealthy, ""},
		`{"status":"pass","n":2}`:       {302, "", "HTTP 302"},
		`{"status":"fine"}`:             {200, "", "unknown status"},
		`{}`:                            {200, "", "unknown status"},
		`<html>`:                        {502, "", "HTTP 502 without a health report"},
		strings.Repeat(" ", 65<<10):     {200, "", "more than"},
		`{"status":"error","output":1}`: {200, "", "without a health report"},
	} {
		server.Set(instance, "web", healthtest.Answer{Status: want.code, Body: body})
		got, err := c.Check(t.Context(), instance, "web")
		if got.Status != want.status || (err == nil) != (want.err == "") || (err != nil && !strings.Contains(err.Error(), want.err)) {
			t.Errorf("%d %.40s: %+v, %v", want.code, body, got, err)
		}
	}
}

func TestHTTPComponents(t *testing.T) {
	t.Parallel()
	c, server := wire(t)
	server.Set(instance, "web", healthtest.Pass())
	server.Set(instance, "db", healthtest.Pass())
	if names, err := c.Components(t.Context(), instance); err != nil || !cmp.Equal(names, []string{"db", "web"}) {
		t.Errorf("%v, %v", names, err)
	}
	for code, refused := range map[int]bool{301: true, 400: true, 401: false, 403: false, 404: true, 410: true, 429: false, 500: false, 503: false} {
		server.Spoil(healthtest.Answer{Status: code})
		if _, err := c.Components(t.Context(), instance); err == nil || errors.Is(err, health.ErrRefused) != refused {
			t.Errorf("HTTP %d: %v", code, err)
		}
	}
	for _, body := range []string{"", "[]", "{}", `{"components":null}`, `{"components":[1]}`} {
		server.Spoil(healthtest.Answer{Body: body})
		if names, err := c.Components(t.Context(), instance); err == nil {
			t.Errorf("%s: %v", body, names)
		}
	}
	if _, err := c.Components(t.Context(), instance); err != nil {
		t.Error(err)
	}
	for _, base := range []string{"", "ftp://x", "http://", "https://user:secret@host", "https://host?x=1", "https://host#x", "::"} {
		if _, err := health.NewHTTP(base, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", base, err)
		}
	}
}
