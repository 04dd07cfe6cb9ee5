package update_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine/update"
	"github.com/vibedata/roundhouse/engine/update/updatetest"
)

// wire returns the client over a listening server.
func wire(t *testing.T) (*update.HTTP, *updatetest.Server) {
	t.Helper()
	server := updatetest.Listen(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := update.NewHTTP(server.URL+"/", &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	c, server := wire(t)
	ctx := t.Context()
	if _, err := c.Status(ctx, instance, "web"); !errors.Is(err, update.ErrNoComponent) {
		t.Errorf("status of nothing: %v", err)
	}
	for range 2 { // the same key is the same request
		if err := c.Apply(ctx, instance, "web", "1", "key/1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []update.State{update.Updating, update.Ready} {
		if s, err := c.Status(ctx, instance, "web"); err != nil || s.State != want || s.Version != "1" {
			t.Errorf("status %+v, %v; want %s", s, err, want)
		}
	}
	if got := server.Log(); len(got) != 1 || got[0] != instance+" web 1" {
		t.Errorf("applied: %q", got)
	}
	if err := c.Apply(ctx, instance, "web", updatetest.Forbidden, "key/2"); !errors.Is(err, update.ErrRefused) {
		t.Errorf("apply what is refused: %v", err)
	}
	for range 2 {
		if err := c.Apply(ctx, instance, "web", "", "key/3"); err != nil {
			t.Errorf("take away: %v", err)
		}
	}
	if server.Version(instance, "web") != "" {
		t.Error("the component is still there")
	}
}

// A server error can be retried, except where the server reports it as permanent.
func TestHTTPTrouble(t *testing.T) {
	t.Parallel()
	c, server := wire(t)
	for status, refused := range map[int]bool{301: true, 400: true, 401: false, 403: false, 408: false, 409: false, 410: true, 429: false, 500: false, 503: false} {
		server.Inject(updatetest.Fault{Method: http.MethodPut, Status: status})
		if err := c.Apply(t.Context(), "i1", "web", "1", "k"); err == nil || errors.Is(err, update.ErrRefused) != refused {
			t.Errorf("HTTP %d: %v", status, err)
		}
	}
	// The transport may repeat a request with an idempotency key by itself.
	server.Inject(updatetest.Fault{Method: http.MethodPut, Applied: true})
	if err := c.Apply(t.Context(), "i1", "web", "1", "k"); err != nil {
		if err := c.Apply(t.Context(), "i1", "web", "1", "k"); err != nil {
			t.Error(err)
		}
	}
	if got := server.Log(); len(got) != 1 || server.Version("i1", "web") != "1" {
		t.Errorf("applied: %q", got)
	}
}

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"no JSON": "<html>", "no state": `{"version":"1"}`, "too long": `{"message":"` + strings.Repeat("x", 65<<10) + `"}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		transport := &http.Transport{}
		c, err := update.NewHTTP(server.URL, &http.Client{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := c.Status(t.Context(), "i1", "web"); err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: %+v, %.600v", name, s, err)
		}
		transport.CloseIdleConnections()
		server.Close()
	}
	for _, base := range []string{"", "web", "ftp://h/", "http://", "http://u:p@h/", "http://h/?a=b", "http://h/#a"} {
		if _, err := update.NewHTTP(base, nil); err == nil {
			t.Errorf("the endpoint %q is taken", base)
		}
	}
	if _, err := update.New(update.Config{VerifyTimeout: -1}); err == nil || !strings.Contains(err.Error(), "Components") || !strings.Contains(err.Error(), "negative") {
		t.Errorf("New of nothing: %v", err)
	}
}
