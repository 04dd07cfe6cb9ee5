package localhost

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// localKeyVariable holds the key of the functions, for routes that the host leaves open and the handler protects
// itself.
const localKeyVariable = "ROUNDHOUSE_LOCAL_KEY"

// own reports whether a host with its port, as in a Host header, is a name of this host's listener.
func (h *Host) own(address string) bool {
	name, port, err := net.SplitHostPort(address)
	if err != nil { // without a port it is HTTP's default
		name, port = address, "80"
	}
	return port == strconv.Itoa(h.port) && (strings.EqualFold(name, "localhost") || name == "127.0.0.1")
}

// refusal returns the reason to refuse a request, "" for none. Any page in a browser on this machine can send requests
// to loopback addresses. A page of another origin has that in Origin; a foreign name whose address was changed to this
// machine's ("DNS rebinding") is in Host.
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
