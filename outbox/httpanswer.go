package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// maxAnswer is how much of an answer is read, in bytes. A connection with more to come is not used again.
	maxAnswer = 4 << 10
	// maxCause is the length of the text of a connection error, which can quote what the destination sent.
	maxCause = 512
)

// checkAnswer reads an answer and says whether the event was taken.
func (h *HTTP) checkAnswer(response *http.Response) error {
	status := response.StatusCode
	// Even when nobody wants to know, the body is read: else the connection could not be used again. After 101 it is
	// the connection itself, which need not end.
	var body []byte
	if status != http.StatusSwitchingProtocols {
		body, _ = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	}
	if status >= 200 && status < 300 {
		return nil
	}
	out := &DeliveryError{Permanent: permanentStatus(status), Status: status}
	if !out.Permanent {
		out.RetryAfter = parseRetryAfter(response.Header.Get("Retry-After"), h.now(), h.maxRetryAfter)
	}
	text := cmp.Or(printable(string(body), maxAnswer), "no text")
	if status >= 300 && status < 400 {
		text = fmt.Sprintf("redirects are not followed; it leads to %s: correct the destination", h.redirectHost(response))
	}
	out.Err = fmt.Errorf("post to %s: %s", h.destination.Host, text)
	return out
}

// permanentStatus is for all but 2xx; the doc comment of HTTP gives the reasons.
func permanentStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return true
	}
	return status >= 300 && status < 500
}

// redirectHost leaves out what may be secret in a Location.
func (h *HTTP) redirectHost(response *http.Response) string {
	location := response.Header.Get("Location")
	if location == "" {
		return "nowhere"
	}
	u, err := h.destination.Parse(location)
	if err != nil || u.Host == "" {
		return "an invalid URL"
	}
	return printable(u.Host, 253)
}

// parseRetryAfter reads seconds or a date (RFC 9110, section 10.2.3) as a delay of at most longest. What is neither,
// or lies in the past, is no delay.
func parseRetryAfter(value string, now time.Time, longest time.Duration) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		// A number that overflows is more than the longest.
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(longest/time.Second) {
			return longest
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), longest)
}

// connectionFailed wraps what went wrong before there was an answer.
func (h *HTTP) connectionFailed(err error) *DeliveryError {
	return &DeliveryError{Permanent: errors.Is(err, ErrDestination), Err: &connectionError{
		text: fmt.Sprintf("post to %s: %s", h.destination.Host, printable(err.Error(), maxCause)), err: err,
	}}
}

// connectionError shows a text that is safe to keep in place of its cause's.
type connectionError struct {
	text string
	err  error
}

func (e *connectionError) Error() string { return e.text }

func (e *connectionError) Unwrap() error { return e.err }

// printable makes one line of at most limit bytes out of foreign text: it cannot forge log lines, move a terminal's cursor
// or reverse the direction of what follows.
func printable(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}
