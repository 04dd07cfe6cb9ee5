package handler

import (
	"net/http"

	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/services/outbound"
)

// noting records the sender's authentication in the log of an event's attempts.
type noting struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	recorded, last := outbound.Record(r.Context())
	response, err := n.next.RoundTrip(r.WithContext(recorded))
	sent := last()
	if sent == nil && err == nil {
		sent = outbound.SentBy(r)
	}
	if sent != nil {
		outbox.NoteSent(r.Context(), sent.String())
	}
	return response, err
}

// CloseIdleConnections closes the idle connections when the destination is closed.
func (n noting) CloseIdleConnections() {
	if idle, ok := n.next.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}
