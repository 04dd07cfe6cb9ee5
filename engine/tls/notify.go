package tls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/vibedata/roundhouse/services/outbound"
)

// notifyTimeout bounds one request of HTTPDistributor.
const notifyTimeout = 30 * time.Second

// maxAnswer bounds the bytes read of an answer, so that its connection can be reused.
const maxAnswer = 64 << 10

// HTTPDistributor notifies a target by a POST to its NotifyURL. The body is the Certificate as JSON, and the header
// Idempotency-Key is the same for the same certificate and target. 2xx means that the target will serve the
// certificate, perhaps a little later. 4xx other than 401, 403, 404, 408, 409, 425 and 429 is permanent: those others
// can be fixed while the message has attempts left. It follows no redirect: 3xx is permanent, too.
type HTTPDistributor struct {
	// Client returns the client that notifies a target, and authenticates the sender; nil means one without
	// authentication. A client of outbound.Clients is for the target's host alone.
	Client func(to Target) (*http.Client, error)
}

// retryable are the statuses below 500 that another attempt may change.
var retryable = map[int]bool{
	http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusNotFound: true, http.StatusRequestTimeout: true,
	http.StatusConflict: true, http.StatusTooEarly: true, http.StatusTooManyRequests: true,
}

// Distribute implements Distributor.
func (d HTTPDistributor) Distribute(ctx context.Context, to Target, c Certificate) error {
	if err := checkNotifyURL(to.NotifyURL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.NotifyURL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", c.Fingerprint+"-"+url.QueryEscape(to.ID))
	client, err := d.client(to)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	resp, err := client.Do(req)
	if errors.Is(err, outbound.ErrRedirect) {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// The answer is not shown: it comes from the target, and may contain secrets.
	if _, err := io.CopyN(io.Discard, resp.Body, maxAnswer); err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch status := resp.StatusCode; {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return fmt.Errorf("%w: it answers %s, and redirects are not followed: correct its notifyUrl", ErrTarget, resp.Status)
	case status >= 400 && status < 500 && !retryable[status]:
		return fmt.Errorf("%w: it answers %s", ErrTarget, resp.Status)
	default:
		return fmt.Errorf("it answers %s", resp.Status)
	}
}

// client returns the client for a target. It never follows redirects.
func (d HTTPDistributor) client(to Target) (*http.Client, error) {
	var c http.Client
	if d.Client != nil {
		given, err := d.Client(to)
		if err != nil {
			return nil, err
		}
		c = *given
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c, nil
}

// checkNotifyURL accepts https, and http on the loopback interface. The URL is not shown: it may contain a key.
func checkNotifyURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%w: its notifyUrl is no URL", ErrTarget)
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme != "https" && (u.Scheme != "http" || ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%w: its notifyUrl must begin with https://", ErrTarget)
	}
	return nil
}
