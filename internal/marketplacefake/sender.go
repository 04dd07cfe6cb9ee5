package marketplacefake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Sender sends webhooks and notifications as the services do: it waits ten seconds for an answer, and repeats rejected
// ones.
type Sender struct {
	// Client sends; http.DefaultClient when nil.
	Client *http.Client
	// Token returns the bearer token of a webhook; nil sends none.
	Token func() string
	// Attempts bounds the tries; 500 when 0.
	Attempts int
	// Pause waits between two tries. Required, because the marketplace's own minute is too long for a test.
	Pause func(context.Context) error
}

// ErrGaveUp means that all tries failed.
var ErrGaveUp = errors.New("the sender gave up")

// Webhook announces an operation and returns the statuses of all answers, 0 for none. Like the marketplace, it repeats
// requests until a status of 200 to 299.
func (s Sender) Webhook(ctx context.Context, address string, o Operation) ([]int, error) {
	return s.send(ctx, address, operationDocument(&o), func(status int) bool { return status/100 != 2 })
}

// Notify announces a managed application. It appends /resource to the path of the registered address. It repeats a
// request without an answer, or with a status of 429, or of 500 and more.
func (s Sender) Notify(ctx context.Context, address string, notification map[string]any) ([]int, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/resource"
	return s.send(ctx, u.String(), notification, func(status int) bool {
		return status == 0 || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
	})
}

func (s Sender) send(ctx context.Context, address string, document any, again func(status int) bool) ([]int, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	attempts := s.Attempts
	if attempts == 0 {
		attempts = 500
	}
	var statuses []int
	for len(statuses) < attempts {
		if len(statuses) > 0 {
			if err := s.Pause(ctx); err != nil {
				return statuses, err
			}
		}
		status := s.try(ctx, address, body)
		statuses = append(statuses, status)
		if !again(status) {
			return statuses, nil
		}
	}
	return statuses, fmt.Errorf("%w after %d tries", ErrGaveUp, len(statuses))
}

// try sends once; 0 means that no answer arrived. It waits for an answer until ctx ends, longer than the services do:
// an overloaded machine is no failure.
func (s Sender) try(ctx context.Context, address string, body []byte) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	if s.Token != nil {
		req.Header.Set("Authorization", "Bearer "+s.Token())
	}
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // only the status counts
	return resp.StatusCode
}

// Answering starts a receiver that answers each request with the status from answer. It ends with the test.
func Answering(t testing.TB, answer func(r *http.Request) int) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(answer(r)) }))
	t.Cleanup(server.Close)
	return server
}
