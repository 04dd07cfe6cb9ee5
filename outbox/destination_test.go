package outbox

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestAdmits(t *testing.T) {
	t.Parallel()
	list, err := parseAllow([]string{"10.1.0.0/16", "192.168.7.7", "fd00:1::/32", "fe80:0:0:7::/64", "::ffff:172.16.0.1", "Hooks.Internal."})
	if err != nil {
		t.Fatal(err)
	}
	const anyHost, listed = "example.com", "hooks.internal"
	for _, c := range []struct {
		host, address string
		want          bool
	}{
		{anyHost, "93.184.215.14", true},
		{anyHost, "2606:2800:21f:cb07:6820:80da:af6b:8b2c", true},
		{anyHost, "::ffff:93.184.215.14", true},
		{anyHost, "64:ff9b::5db8:d70e", true},
		// The edges of the private networks.
		{anyHost, "9.255.255.255", true},
		{anyHost, "11.0.0.0", true},
		{anyHost, "172.15.255.255", true},
		{anyHost, "172.32.0.0", true},
		{anyHost, "100.63.255.255", true},
		{anyHost, "100.128.0.0", true},
		{anyHost, "223.255.255.255", true},

		{anyHost, "127.0.0.1", false},
		{anyHost, "127.255.255.254", false},
		{anyHost, "10.0.0.1", false},
		{anyHost, "172.16.0.2", false},
		{anyHost, "172.31.255.255", false},
		{anyHost, "192.168.0.1", false},
		{anyHost, "169.254.169.254", false},
		{anyHost, "168.63.129.16", false},
		{anyHost, "100.64.0.1", false},
		{anyHost, "100.127.255.255", false},
		{anyHost, "0.0.0.0", false},
		{anyHost, "0.1.2.3", false},
		{anyHost, "224.0.0.1", false},
		{anyHost, "239.255.255.255", false},
		{anyHost, "240.0.0.1", false},
		{anyHost, "255.255.255.255", false},
		{anyHost, "192.0.2.1", false},
		{anyHost, "198.18.0.1", false},
		{anyHost, "::", false},
		{anyHost, "::1", false},
		{anyHost, "::127.0.0.1", false},
		{anyHost, "::ffff:127.0.0.1", false},
		{anyHost, "::ffff:169.254.169.254", false},
		{anyHost, "::ffff:0:127.0.0.1", false},
		{anyHost, "64:ff9b::7f00:1", false},
		{anyHost, "64:ff9b::a9fe:a9fe", false},
		{anyHost, "64:ff9b:1::5db8:d70e", false},
		{anyHost, "2002:7f00:1::", false},
		{anyHost, "2001::1", false},
		{anyHost, "2001:db8::1", false},
		{anyHost, "fe80::1", false},
		{anyHost, "fe80::1%eth0", false},
		{anyHost, "fc00::1", false},
		{anyHost, "fd00:ec2::254", false},
		{anyHost, "fec0::1", false},
		{anyHost, "ff02::1", false},

		{anyHost, "10.1.2.3", true},
		{anyHost, "::ffff:10.1.2.3", true},
		{anyHost, "10.2.0.1", false},
		{anyHost, "192.168.7.7", true},
		{anyHost, "192.168.7.8", false},
		{anyHost, "fd00:1::5", true},
		{anyHost, "fe80:0:0:7::1%eth0", true},
		{anyHost, "fd00:2::5", false},
		{anyHost, "172.16.0.1", true},

		{listed, "10.2.0.1", true},
		{listed, "127.0.0.1", true},
		{"HOOKS.internal.", "fd00:2::5", true},
		{listed, "100.64.0.1", true},
		{listed, "169.254.169.254", false},
		{listed, "168.63.129.16", false},
		{listed, "0.0.0.0", false},
		{listed, "fe80::1", false},
		{"evil.hooks.internal", "10.2.0.1", false},
	} {
		if got := list.admits(c.host, netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s at %s is admitted: %v, want %v", c.host, c.address, got, c.want)
		}
	}
}

func TestParseAllowRefuses(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", ".", "10.0.0.0/33", "10.0.0.0.0", "127.1", "2130706433", "*.internal", "a b", "http://x", "x:443", "fe80::1%eth0/64", "::ffff:10.0.0.0/104", "-\x00"} {
		if _, err := parseAllow([]string{"10.0.0.0/8", entry}); err == nil {
			t.Errorf("%q was taken", entry)
		}
	}
}

func TestHTTPDestinationIsChecked(t *testing.T) {
	t.Parallel()
	long := "https://example.com/" + strings.Repeat("x", maxURL)
	for _, c := range []struct {
		url       string
		plaintext bool
		ok        bool
	}{
		{url: "https://example.com/hook?code=s3cret", ok: true},
		{url: "https://example.com:8443", ok: true},
		{url: "HTTPS://example.com", ok: true},
		{url: "https://93.184.215.14/", ok: true},
		{url: "http://example.com/s3cret", plaintext: true, ok: true},
		{url: "https://127.0.0.1:9000/", ok: true},
		{url: "http://example.com/s3cret"},
		{url: ""},
		{url: "/s3cret"},
		{url: "//example.com/s3cret"},
		{url: "https:example.com/s3cret"},
		{url: "https:///s3cret"},
		{url: "https://:443/s3cret"},
		{url: "ftp://example.com/s3cret", plaintext: true},
		{url: "https://user:s3cret@example.com/"},
		{url: "https://s3cret@example.com/"},
		{url: "https://user:s3cret"},
		{url: "https://example.com/#s3cret"},
		{url: "https://example.com:0/"},
		{url: "https://example.com:65536/"},
		{url: "https://example.com:s3cret/"},
		{url: "https://example.com/%zzs3cret"},
		{url: "https://example.com/\ns3cret"},
		{url: long},
		{url: "https://169.254.169.254/s3cret"},
		{url: "https://[::1]/s3cret"},
		{url: "https://[::ffff:10.0.0.1]/s3cret"},
		{url: "https://[fe80::1%25eth0]/s3cret"},
	} {
		err := HTTPConfig{URL: c.url, Source: "/s", AllowPlaintext: c.plaintext, Allow: []string{"127.0.0.1"}}.Validate()
		if (err == nil) != c.ok || err != nil && (strings.Contains(err.Error(), "s3cret") || !errors.Is(err, ErrInvalid)) {
			t.Errorf("%.64q: %v", c.url, err)
		}
	}
}

// dns answers every question for A with the next of its lists of IPv4 addresses, and no question for AAAA.
type dns struct {
	conn    net.PacketConn
	mu      sync.Mutex
	answers [][]string
}

// startDNS returns a resolver that queries it; the last answer is repeated.
func startDNS(t *testing.T, answers ...[]string) *net.Resolver {
	t.Helper()
	conn := testenv.Must(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	d, done := &dns{conn: conn, answers: answers}, make(chan struct{})
	go func() {
		defer close(done)
		d.serve()
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (d *dns) serve() {
	buffer := make([]byte, 1500)
	for {
		n, from, err := d.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if n > 12 {
			_, _ = d.conn.WriteTo(d.answer(buffer[:n]), from)
		}
	}
}

// answer builds a reply (RFC 1035, section 4): header, the question as received, one record per address.
func (d *dns) answer(query []byte) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5
	reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
	if isA := query[end-4] == 0 && query[end-3] == 1; !isA {
		return reply
	}
	d.mu.Lock()
	addresses := d.answers[0]
	if len(d.answers) > 1 {
		d.answers = d.answers[1:]
	}
	d.mu.Unlock()
	reply[7] = byte(len(addresses))
	for _, a := range addresses {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, netip.MustParseAddr(a).AsSlice()...)
	}
	return reply
}
