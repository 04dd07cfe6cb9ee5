package update

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/services/outbound"
)

// maxAnswer bounds the bytes read of an answer.
const maxAnswer = 64 << 10

// HTTP reaches components over HTTP: PUT {base}/instances/{instance}/components/{component} with {"version": ...} and
// an Idempotency-Key requests a version, DELETE removes the component, and GET answers a Status, or 404. The zero
// value is not ready; use NewHTTP.
type HTTP struct {
	base   string
	client *http.Client
}

// NewHTTP makes the client of a management endpoint. client authenticates, and bounds its requests in time, as the
// clients of outbound.Clients do; nil is a client without authentication and with a timeout of 30 s. It follows no
// redirect: that would pass on the client's credentials.
func NewHTTP(base string, client *http.Client) (*HTTP, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the component endpoint has to be an http or https URL without credentials, query and fragment")
	}
	c := http.Client{Timeout: 30 * time.Second}
	if client != nil {
		c = *client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &HTTP{base: strings.TrimSuffix(u.String(), "/"), client: &c}, nil
}

// Status implements Components.
func (h *HTTP) Status(ctx context.Context, instanceID, component string) (Status, error) {
	answer, err := h.do(ctx, http.MethodGet, instanceID, component, nil, "")
	if err != nil {
		return Status{}, err
	}
	var s Status
	if err := json.Unmarshal(answer, &s); err != nil {
		return Status{}, fmt.Errorf("status of component %s: %w", component, err)
	}
	if s.State != Updating && s.State != Ready && s.State != Failed {
		return Status{}, fmt.Errorf("status of component %s: unknown state %.64q", component, s.State)
	}
	return s, nil
}

// Apply implements Components.
func (h *HTTP) Apply(ctx context.Context, instanceID, component, version, key string) error {
	if version == "" {
		_, err := h.do(ctx, http.MethodDelete, instanceID, component, nil, key)
		if errors.Is(err, ErrNoComponent) {
			return nil
		}
		return err
	}
	body, err := json.Marshal(struct {
		Version string `json:"version"`
	}{version})
	if err != nil {
		return fmt.Errorf("apply component %s: %w", component, err)
	}
	_, err = h.do(ctx, http.MethodPut, instanceID, component, body, key)
	return err
}

func (h *HTTP) do(ctx context.Context, method, instanceID, component string, body []byte, key string) ([]byte, error) {
	path := "/instances/" + url.PathEscape(instanceID) + "/components/" + url.PathEscape(component)
	request, err := http.NewRequestWithContext(ctx, method, h.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s component %s: %w", method, component, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := h.client.Do(request)
	if errors.Is(err, outbound.ErrRedirect) {
		return nil, fmt.Errorf("%s component %s: %w: %w", method, component, ErrRefused, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s component %s: %w", method, component, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch status := response.StatusCode; {
	case err != nil:
		return nil, fmt.Errorf("%s component %s: %w", method, component, err)
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("%s component %s: an answer of more than %d bytes", method, component, maxAnswer)
	case status >= 200 && status < 300:
		return answer, nil
	case status == http.StatusNotFound && method != http.MethodPut:
		return nil, fmt.Errorf("%s component %s: %w", method, component, ErrNoComponent)
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500,
		status == http.StatusUnauthorized, status == http.StatusForbidden: // a new role assignment takes minutes to become effective
		return nil, fmt.Errorf("%s component %s: HTTP %d", method, component, status)
	default:
		return nil, fmt.Errorf("%s component %s: HTTP %d: %w", method, component, status, ErrRefused)
	}
}
