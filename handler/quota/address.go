package quota

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// AddressOf returns the address of a request: the last public one that proxies have written, since clients can write
// those before it. A client has a whole IPv6 network of 64 bits, which counts as one address.
func AddressOf(r *http.Request) string {
	hops := strings.Split(strings.Join(append([]string{r.RemoteAddr}, r.Header.Values("X-Forwarded-For")...), ","), ",")
	last := ""
	for n := len(hops) - 1; n >= 0; n-- {
		text := strings.TrimSpace(hops[n])
		if host, _, err := net.SplitHostPort(text); err == nil {
			text = host
		}
		a, err := netip.ParseAddr(strings.Trim(text, "[]"))
		if err != nil {
			break // from here on, a client has written it
		}
		a = a.Unmap().WithZone("")
		network := a.String()
		if a.Is6() {
			if p, err := a.Prefix(64); err == nil {
				network = p.String()
			}
		}
		if last == "" {
			last = network
		}
		if a.IsGlobalUnicast() && !a.IsPrivate() {
			return network
		}
	}
	return last
}
