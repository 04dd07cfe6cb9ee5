package outbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// maxURL is the longest URL of a destination, in bytes.
const maxURL = 2048

// ErrDestination means that every address of a destination is in a forbidden network. An operator has to add the
// network or the host to the allow-list, or to correct the destination.
var ErrDestination = errors.New("destination not allowed")

// reservedNetworks contain no public destination, according to the IANA special-purpose registries.
var reservedNetworks = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	// At this address, Azure serves every virtual machine, settings with secrets included.
	"168.63.129.16/32",
	// Of the global unicast addresses: protocol assignments with Teredo, documentation, 6to4.
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// privateNetworks are the reserved networks whose addresses an organisation assigns itself: a host of the allow-list
// may resolve to these.
var privateNetworks = prefixes("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// allowList holds the allowed destinations besides public addresses.
type allowList struct {
	networks []netip.Prefix
	hosts    map[string]bool
}

// parseAllow parses the entries that HTTPConfig.Allow describes.
func parseAllow(entries []string) (allowList, error) {
	a := allowList{hosts: map[string]bool{}}
	var errs []error
	for _, entry := range entries {
		if p, err := netip.ParsePrefix(entry); err == nil && !p.Addr().Is4In6() {
			a.networks = append(a.networks, p.Masked())
			continue
		}
		if addr, err := netip.ParseAddr(entry); err == nil && addr.Zone() == "" {
			addr = unwrapIPv4(addr)
			a.networks = append(a.networks, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		if !hostName(entry) {
			errs = append(errs, fmt.Errorf("allow %.64q: it is no network (10.1.0.0/16), no address and no host name", entry))
			continue
		}
		a.hosts[normalizeHost(entry)] = true
	}
	return a, errors.Join(errs...)
}

// hostName reports whether s can be looked up. A name whose last label is a number is rejected, because some resolvers
// would read it as an address.
func hostName(s string) bool {
	s = normalizeHost(s)
	labels := strings.Split(s, ".")
	for _, l := range labels {
		ok := l != "" && len(l) <= 63
		for i := 0; ok && i < len(l); i++ {
			c := l[i]
			ok = 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
		}
		if !ok {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(s) <= 253 && (last[0] < '0' || last[0] > '9')
}

// normalizeHost returns the canonical form of a host name.
func normalizeHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// unwrapIPv4 returns the effective address of packets: the IPv4 address in a mapped or a NAT64 address, otherwise the
// address itself.
func unwrapIPv4(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// admits reports whether the resolved address of a host is allowed.
func (l allowList) admits(host string, a netip.Addr) bool {
	a = unwrapIPv4(a)
	if within(l.networks, a) || l.hosts[normalizeHost(host)] && within(privateNetworks, a) {
		return true
	}
	return (a.Is4() || globalUnicast.Contains(a)) && !within(reservedNetworks, a)
}

// dial connects to admitted addresses only. Each address is checked right before the connection, after the name was
// resolved, so a name that resolves differently the next time gains nothing. The timeout is for dials that outlive
// their request.
func (l allowList) dial(resolver *net.Resolver, timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		// Addresses are tried concurrently.
		var admitted atomic.Bool
		dialer := net.Dialer{Timeout: timeout, Resolver: resolver, Control: func(_, resolved string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(resolved)
			if err != nil || !l.admits(host, to.Addr()) {
				return fmt.Errorf("%w: it resolves to an address outside of the public networks and of the allow-list", ErrDestination)
			}
			admitted.Store(true)
			return nil
		}}
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil && admitted.Load() && errors.Is(err, ErrDestination) {
			return nil, fmt.Errorf("dial %s: no admitted address could be connected to", address)
		}
		return conn, err
	}
}

// parseDestination validates the URL of a destination. Its errors quote only the host, because paths and queries often
// hold access keys.
func (l allowList) parseDestination(text string, plaintext bool) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL || u.Hostname() == "" || u.Opaque != "" {
		return nil, fmt.Errorf("the destination is no absolute URL of at most %d bytes", maxURL)
	}
	var errs []error
	if u.Scheme != "https" && (u.Scheme != "http" || !plaintext) {
		errs = append(errs, fmt.Errorf("destination %.253s: the scheme %.16q is not allowed, use https", u.Hostname(), u.Scheme))
	}
	if u.User != nil {
		errs = append(errs, fmt.Errorf("destination %.253s: user name and password in the URL are not allowed", u.Hostname()))
	}
	if u.Fragment != "" {
		errs = append(errs, fmt.Errorf("destination %.253s: a fragment in the URL is not sent, leave it out", u.Hostname()))
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			errs = append(errs, fmt.Errorf("destination %.253s: the port is none of 1 to 65535", u.Hostname()))
		}
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !l.admits(u.Hostname(), a) {
		errs = append(errs, fmt.Errorf("destination %.64s: %w", u.Hostname(), ErrDestination))
	}
	return u, errors.Join(errs...)
}
