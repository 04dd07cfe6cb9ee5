package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/vibedata/roundhouse/internal/redact"
)

const (
	// maxAnswer bounds the bytes that are read of an answer. A connection with a longer answer is not used again.
	maxAnswer = 4 << 10
	// maxCause bounds the text of a connection error, which can quote the destination.
	maxCause = 512
)

// checkAnswer reads an answer and returns an error unless the destination accepted the event.
func (h *HTTP) checkAnswer(response *http.Response) error {
	status := response.StatusCode
	// The body is always read, because otherwise the connection could not be used again. After 101 the body is the
	// connection itself, which need not end.
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

// permanentStatus reports whether a status other than 2xx is permanent; the doc comment of HTTP gives the reasons.
func permanentStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return true
	}
	return status >= 300 && status < 500
}

// redirectHost returns the host in a Location header, because the rest may be secret.
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

// parseRetryAfter parses seconds or a date (RFC 9110, section 10.2.3) as a delay of at most longest. Any other value,
// and a date in the past, is no delay.
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

// connectionFailed wraps an error without an answer.
func (h *HTTP) connectionFailed(err error) *DeliveryError {
	return &DeliveryError{Permanent: errors.Is(err, ErrDestination), Err: &connectionError{
		text: fmt.Sprintf("post to %s: %s", h.destination.Host, printable(withoutAddresses(err.Error()), maxCause)), err: err,
	}}
}

// addresses matches possible IP addresses in errors of connections, with their ports, and the name server after " on
// ".
var addresses = regexp.MustCompile(`( on )?\[?([0-9A-Fa-f]*(?:[.:][0-9A-Fa-f]*){2,})(%[0-9A-Za-z]+)?\]?(:[0-9]+)?`)

// withoutAddresses removes IP addresses from the text of an error. Events belong to tenants, which choose host names
// and must not learn their addresses in the app's network.
func withoutAddresses(text string) string {
	return addresses.ReplaceAllStringFunc(text, func(found string) string {
		parts := addresses.FindStringSubmatch(found)
		address := strings.TrimRight(parts[2], ".:") // of the sentence
		_, err := netip.ParseAddr(address)
		if err != nil { // an IPv4 address takes its port along
			_, err = netip.ParseAddrPort(address)
		}
		after := parts[2][len(address):]
		switch {
		case err != nil:
			return found
		case parts[1] != "":
			return after
		}
		return "(address)" + after
	})
}

// connectionError has a text that may be stored and shown, unlike the text of its cause.
type connectionError struct {
	text string
	err  error
}

func (e *connectionError) Error() string { return e.text }

func (e *connectionError) Unwrap() error { return e.err }

// printable returns one line of at most limit bytes of outside text, without secrets, so that it can neither forge log
// lines, nor move a terminal's cursor, nor reverse the direction of the text after it.
func printable(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	s = redact.Text(strings.Join(strings.Fields(s), " ")) // before the cut, which makes secrets unrecognisable
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}
