package access

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// fromHere reports whether a request was sent to this machine by a program or a page of this machine: all its host
// names are those of the loopback interface, and so is the origin of a page.
func fromHere(r *http.Request) error {
	hosts := append([]string{r.Host}, r.Header.Values("X-Forwarded-Host")...)
	for _, host := range hosts {
		if !loopback(host) {
			return fmt.Errorf("the request is for the host %.64q, not for this machine", host)
		}
	}
	if from := r.Header.Values("X-Forwarded-For"); len(from) > 0 { // the host adds its peer there
		if peer := from[len(from)-1]; !loopback(strings.TrimSpace(peer[strings.LastIndexByte(peer, ',')+1:])) {
			return fmt.Errorf("the request comes from %.64q, not from this machine", peer)
		}
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || !loopback(u.Host) || !sameHost(u.Host, hosts[len(hosts)-1]) {
		return fmt.Errorf("the request comes from a page of %.64q", origin)
	}
	return nil
}

// loopback reports whether a host, with or without a port, is this machine.
func loopback(host string) bool {
	name := host
	if without, _, err := net.SplitHostPort(host); err == nil {
		name = without
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

// sameHost compares names and ports: another port is another program.
func sameHost(a, b string) bool { return strings.EqualFold(a, b) }

// crossSite reports whether a browser sends a change for a page of another site, with the cookie of the signed-in
// user. A request with a token of its own is not from such a page.
func crossSite(r *http.Request) bool {
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	if safe || r.Header.Get("Authorization") != "" {
		return false
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "cross-site", "same-site":
		return true
	case "":
		return foreignOrigin(r) // of an older browser
	default:
		return false
	}
}

// foreignOrigin reports whether the Origin header names another host than the requested one.
func foreignOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	host := r.Host
	if forwarded := r.Header.Values("X-Forwarded-Host"); len(forwarded) > 0 {
		host = forwarded[len(forwarded)-1] // which the Functions host has added
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host == "" || !sameHost(u.Host, host)
}
