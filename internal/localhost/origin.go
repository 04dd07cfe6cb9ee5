package localhost

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// localKeyVariable tells the handler the key of its functions, for doors that the host leaves open and the handler closes
// itself.
const localKeyVariable = "ROUNDHOUSE_LOCAL_KEY"

// own says whether a host with its port, as a Host header has it, is a name of this host's listener.
func (h *Host) own(address string) bool {
	name, port, err := net.SplitHostPort(address)
	if err != nil { // without a port it is HTTP's own
		name, port = address, "80"
	}
	return port == strconv.Itoa(h.port) && (strings.EqualFold(name, "localhost") || name == "127.0.0.1")
}

// refusal says why a request is not for this host, "" if it is. Every page that a browser on this machine shows can send
// requests to loopback addresses: what a page of another origin sends has that in Origin, and a name of another's whose
// address was changed to this machine's ("DNS rebinding") is in Host.
func (h *Host) refusal(r *http.Request) string {
	if !h.own(r.Host) {
		return "the Host header is not this host's: use " + h.URL()
	}
	for _, text := range r.Header.Values("Origin") {
		origin, err := url.Parse(text)
		if err != nil || origin.Scheme != "http" || !h.own(origin.Host) || text != origin.Scheme+"://"+origin.Host {
			return "pages of other origins may not use this host"
		}
	}
	return ""
}
