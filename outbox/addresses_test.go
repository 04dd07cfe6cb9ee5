package outbox

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// Errors of connections have no IP addresses of the app's network; the rest of their text is unchanged.
func TestErrorsWithoutAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 443}, Err: net.UnknownNetworkError("x")}).Error():                                                             "dial tcp (address): unknown network x",
		(&net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4}, Addr: &net.TCPAddr{IP: net.ParseIP("fd00::5"), Port: 443}, Err: net.UnknownNetworkError("x")}).Error(): "read tcp (address)->(address): unknown network x",
		(&net.DNSError{Err: "no such host", Name: "db.corp", Server: "168.63.129.16:53"}).Error():                                                                                                               "lookup db.corp: no such host",
		(&net.DNSError{Err: "i/o timeout", Name: "db.corp", Server: "[fe80::1%eth0]:53"}).Error():                                                                                                               "lookup db.corp: i/o timeout",
		"x509: certificate is valid for 10.0.0.5, not a.example":                                                                                                                                                "x509: certificate is valid for (address), not a.example",
		"proxy ::ffff:10.0.0.5 and 2001:db8::1 refused":                                                                                                                                                         "proxy (address) and (address) refused",
		"tls: current time 2026-11-28T14:55:19Z is after 2026-11-27T00:00:00Z, at 12:30:45, version 1.2":                                                                                                        "tls: current time 2026-11-28T14:55:19Z is after 2026-11-27T00:00:00Z, at 12:30:45, version 1.2",
		"HTTP/1.1 200 OK: 3.14 : :: . a:b": "HTTP/1.1 200 OK: 3.14 : :: . a:b",
	} {
		testenv.Equal(t, text, want, withoutAddresses(text))
	}
}

// A destination that resolves into a private network is refused without its address.
func TestRefusedDestinationHidesItsAddress(t *testing.T) {
	t.Parallel()
	_, err := (allowList{}).dial(net.DefaultResolver, time.Second)(t.Context(), "tcp", "localhost:9")
	if err == nil || strings.Contains(withoutAddresses(err.Error()), "127.0.0.1") || strings.Contains(withoutAddresses(err.Error()), "::1") || !strings.Contains(err.Error(), ErrDestination.Error()) {
		t.Error(err)
	}
}
