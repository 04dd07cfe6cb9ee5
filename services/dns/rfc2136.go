package dns

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/vibedata/roundhouse/internal/keytext"
)

// The parameters of signatures (RFC 8945).
const (
	// DefaultAlgorithm is the algorithm of keys without one.
	DefaultAlgorithm = "hmac-sha256"
	// clockSkew is the allowed clock difference of both sides, in seconds.
	clockSkew = 300
)

// algorithms are the allowed ones; those before SHA-2 are not.
var algorithms = map[string]string{DefaultAlgorithm: dns.HmacSHA256, "hmac-sha384": dns.HmacSHA384, "hmac-sha512": dns.HmacSHA512}

// Key signs updates (TSIG).
type Key struct {
	// Name is the key's name at the server.
	Name string
	// Algorithm is hmac-sha256, hmac-sha384 or hmac-sha512; DefaultAlgorithm when "".
	Algorithm string
	// Secret reads the key: base64, as tools for such keys write it. It is called for each update.
	Secret func(ctx context.Context) ([]byte, error)
}

// RFC2136 changes a zone by signed updates of its server (RFC 2136, RFC 8945), over TCP. The key needs the permission
// to update TXT records below _acme-challenge names only.
type RFC2136 struct {
	zone, server string
	key          Key
}

var _ Provider = (*RFC2136)(nil)

// NewRFC2136 returns a provider for a zone at its primary server, host:port. It sends no request yet.
func NewRFC2136(zone, server string, key Key) (*RFC2136, error) {
	errs := []error{checkServer(server)}
	if key.Algorithm == "" {
		key.Algorithm = DefaultAlgorithm
	}
	if algorithms[key.Algorithm] == "" {
		errs = append(errs, fmt.Errorf("dns: algorithm %.32q: set hmac-sha256, hmac-sha384 or hmac-sha512", key.Algorithm))
	}
	if _, ok := dns.IsDomainName(key.Name); !ok || key.Name == "" {
		errs = append(errs, errors.New("dns: the key's name is missing"))
	}
	if key.Secret == nil {
		errs = append(errs, errors.New("dns: the key's secret is missing"))
	}
	return &RFC2136{zone: dns.Fqdn(zone), server: server, key: key}, errors.Join(errs...)
}

// Add implements Provider.
func (p *RFC2136) Add(ctx context.Context, name, value string) error {
	return p.update(ctx, func(m *dns.Msg) { m.Insert(record(name, value)) })
}

// Remove implements Provider.
func (p *RFC2136) Remove(ctx context.Context, name, value string) error {
	return p.update(ctx, func(m *dns.Msg) { m.Remove(record(name, value)) })
}

func record(name, value string) []dns.RR {
	return []dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: dns.Fqdn(name), Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: recordTTL}, Txt: []string{value}}}
}

// update sends one change, which the server applies as a whole.
func (p *RFC2136) update(ctx context.Context, change func(*dns.Msg)) error {
	value, err := p.key.Secret(ctx)
	if err != nil {
		return fmt.Errorf("read the key %s: %w", p.key.Name, err)
	}
	defer clear(value)
	raw, err := keytext.Base64(string(value))
	if err != nil {
		return fmt.Errorf("%w: the secret of key %s: %w", ErrRefused, p.key.Name, err)
	}
	defer clear(raw)
	secret := base64.StdEncoding.EncodeToString(raw)
	name := canonical(p.key.Name) + "."
	message := new(dns.Msg)
	message.SetUpdate(p.zone)
	change(message)
	message.SetTsig(name, algorithms[p.key.Algorithm], clockSkew, time.Now().Unix())
	client := dns.Client{Net: "tcp", Timeout: queryTimeout, TsigSecret: map[string]string{name: secret}}
	reply, _, err := client.ExchangeContext(ctx, message, p.server)
	if reply != nil && reply.Rcode != dns.RcodeSuccess {
		return refused(p.server, reply)
	}
	if err == nil && reply.IsTsig() == nil {
		err = errors.New("its answer is not signed")
	}
	if err != nil {
		return fmt.Errorf("%w: update at %s: %w", ErrUnavailable, p.server, err)
	}
	return nil
}

// refused makes an error of a negative answer.
func refused(server string, reply *dns.Msg) error {
	said := dns.RcodeToString[reply.Rcode]
	if signed := reply.IsTsig(); signed != nil && signed.Error != dns.RcodeSuccess {
		said += " " + dns.RcodeToString[int(signed.Error)]
	}
	kind := ErrRefused
	switch reply.Rcode {
	case dns.RcodeRefused, dns.RcodeNotAuth:
		kind = ErrForbidden
	case dns.RcodeServerFailure:
		kind = ErrUnavailable
	}
	return fmt.Errorf("%w: %s answers %s: look at its zone, the key's name, algorithm and secret, both clocks, and what the key may update", kind, server, said)
}
