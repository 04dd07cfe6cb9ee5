package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/internal/payload"
	"github.com/vibedata/roundhouse/services/outbound"
)

// maxAnswer bounds the bytes read of an answer.
const maxAnswer = 64 << 10

// HTTP reaches components over HTTP. GET {base}/instances/{instance}/components answers {"components": ["db",
// "web"]}, and GET {base}/instances/{instance}/components/{component}/health answers {"status": "pass", "output":
// "..."}, which is draft-inadarei-api-health-check-06 with its aliases: pass, ok, up; warn; fail, error, down. A
// component may report a failure with any HTTP status of 400 or more. The zero value is not ready; use NewHTTP.
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
		return nil, errors.New("the health endpoint has to be an http or https URL without credentials, query and fragment")
	}
	c := http.Client{Timeout: 30 * time.Second}
	if client != nil {
		c = *client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &HTTP{base: strings.TrimSuffix(u.String(), "/"), client: &c}, nil
}

// Components implements Checker.
func (h *HTTP) Components(ctx context.Context, instanceID string) ([]string, error) {
	status, answer, err := h.get(ctx, instanceID, "")
	switch {
	case errors.Is(err, outbound.ErrRedirect):
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	case err != nil:
		return nil, err
	case status >= 300 && status < 500 && !passing(status):
		return nil, fmt.Errorf("HTTP %d: %w", status, ErrRefused)
	case status != http.StatusOK:
		return nil, fmt.Errorf("HTTP %d", status)
	}
	var list struct {
		Components *[]string `json:"components"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("the list of components: %w", payload.Explain(err))
	}
	if list.Components == nil {
		return nil, errors.New("the list of components: it has no field components")
	}
	return *list.Components, nil
}

// passing reports whether a refusal may pass: a new role assignment takes minutes to become effective.
func passing(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	default:
		return false
	}
}

// Check implements Checker.
func (h *HTTP) Check(ctx context.Context, instanceID, component string) (Report, error) {
	code, answer, err := h.get(ctx, instanceID, "/"+url.PathEscape(component)+"/health")
	if err != nil {
		return Report{}, err
	}
	var said struct {
		Status string `json:"status"`
		Output string `json:"output"`
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return Report{}, fmt.Errorf("HTTP %d without a health report", code)
	}
	status, known := statusOf(said.Status)
	switch {
	case !known:
		return Report{}, fmt.Errorf("HTTP %d with the unknown status %.32q", code, said.Status)
	case code >= 400: // regardless of the body, the component is not usable
		status = Unhealthy
	case code >= 300:
		return Report{}, fmt.Errorf("HTTP %d", code)
	}
	return Report{Status: status, Message: said.Output}, nil
}

// statusOf translates the status of a report.
func statusOf(said string) (Status, bool) {
	switch strings.ToLower(said) {
	case "pass", "ok", "up":
		return Healthy, true
	case "warn":
		return Degraded, true
	case "fail", "error", "down":
		return Unhealthy, true
	default:
		return "", false
	}
}

func (h *HTTP) get(ctx context.Context, instanceID, rest string) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.base+"/instances/"+url.PathEscape(instanceID)+"/components"+rest, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	return response.StatusCode, answer, err
}
