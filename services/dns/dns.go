// Package dns writes the TXT records by which a certificate authority verifies the ownership of a domain (RFC 8555,
// section 8.4), through the services that hold the zones: [Azure] DNS, and name servers that accept dynamic updates
// ([RFC2136]).
//
// Other values under the same name stay unchanged, also with concurrent writers. An alias (CNAME) of the name is
// followed to its target zone. Await returns only when the zone's own name servers return the value. All calls can be
// repeated. The package does not remember its records: the caller keeps the places and removes them.
//
// It owns no storage keys.
package dns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Test for these errors with errors.Is.
var (
	// ErrNoZone means that no configured zone holds the name.
	ErrNoZone = errors.New("no zone for the name")
	// ErrForbidden means that the zone's service refuses the identity or the key. A new role or key takes effect after
	// minutes.
	ErrForbidden = errors.New("forbidden")
	// ErrRefused means that the zone's service rejects the change. Do not retry.
	ErrRefused = errors.New("refused")
	// ErrUnavailable means that the zone's service, or a name server, returned no usable answer. Retry later.
	ErrUnavailable = errors.New("unavailable")
	// ErrNotServed means that the zone's name servers do not return the value yet.
	ErrNotServed = errors.New("not served")
)

// recordTTL is the time to live of new records, in seconds.
const recordTTL = 60

// The defaults of Config.
const (
	DefaultPollInterval = 2 * time.Second
	DefaultTimeout      = 2 * time.Minute
)

// queryTimeout bounds one exchange with a name server.
const queryTimeout = 5 * time.Second

// Provider changes the TXT records of a zone. Names are fully qualified, in lower case and without the final dot.
// Implementations are safe for concurrent use, also by several processes. Errors are those of this package.
type Provider interface {
	// Add adds a value to those of the name; the name may have it already.
	Add(ctx context.Context, name, value string) error
	// Remove removes a value and keeps the others; the value may be missing.
	Remove(ctx context.Context, name, value string) error
}

// Zone is a zone whose records can be changed.
type Zone struct {
	// Provider changes it. Required.
	Provider Provider
	// Nameservers are queried for values, as host:port; without any, those that the zone names, on port 53.
	Nameservers []string
}

// Config configures Zones.
type Config struct {
	// Zones are the zones that can be changed, by name. Of several that hold a name, the longest is used.
	Zones map[string]Zone
	// Resolver answers queries about all other names, as host:port; the first of /etc/resolv.conf when "".
	Resolver string
	// PollInterval is the polling interval of Await, Timeout its limit; DefaultPollInterval and DefaultTimeout when 0.
	PollInterval, Timeout time.Duration
}

// Validate returns all errors.
func (c Config) Validate() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Zones)) {
		if canonical(name) != name || !strings.Contains(name, ".") {
			errs = append(errs, fmt.Errorf("dns: zone %.80q: write its name in lower case and without a dot at its end", name))
		}
		if c.Zones[name].Provider == nil {
			errs = append(errs, fmt.Errorf("dns: zone %s: Provider is missing", name))
		}
		for _, server := range c.Zones[name].Nameservers {
			errs = append(errs, checkServer(server))
		}
	}
	if c.Resolver != "" {
		errs = append(errs, checkServer(c.Resolver))
	}
	return errors.Join(errs...)
}

func checkServer(address string) error {
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return fmt.Errorf("dns: name server %.80q: write it as host:port", address)
	}
	return nil
}

// Zones are the zones that can be changed. It is safe for concurrent use.
type Zones struct{ config Config }

// New validates config. It sends no request yet.
func New(config Config) (*Zones, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.PollInterval == 0 {
		config.PollInterval = DefaultPollInterval
	}
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	if config.Resolver == "" {
		config.Resolver = systemResolver()
	}
	return &Zones{config: config}, nil
}

// Place is the place of a record.
type Place struct {
	// Zone is one of Config.Zones, Name the record's name in it, after following aliases.
	Zone, Name string
}

// Find follows aliases of a name to the zone that holds it. ErrNoZone means that they lead out of all zones.
func (z *Zones) Find(ctx context.Context, name string) (Place, error) {
	target, err := z.follow(ctx, canonical(name))
	if err != nil {
		return Place{}, fmt.Errorf("follow the aliases of %s: %w", name, err)
	}
	for zone := target; zone != ""; _, zone, _ = strings.Cut(zone, ".") {
		if _, known := z.config.Zones[zone]; known {
			return Place{Zone: zone, Name: target}, nil
		}
	}
	return Place{}, fmt.Errorf("%w: %s, where %s leads, is in none of %s", ErrNoZone, target, canonical(name), strings.Join(slices.Sorted(maps.Keys(z.config.Zones)), ", "))
}

// Add adds a value to the TXT records of a place.
func (z *Zones) Add(ctx context.Context, at Place, value string) error {
	return z.change(at, "add", func(p Provider) error { return p.Add(ctx, at.Name, value) })
}

// Remove removes a value; it may be missing.
func (z *Zones) Remove(ctx context.Context, at Place, value string) error {
	return z.change(at, "remove", func(p Provider) error { return p.Remove(ctx, at.Name, value) })
}

func (z *Zones) change(at Place, doing string, do func(Provider) error) error {
	zone, known := z.config.Zones[at.Zone]
	err := ErrNoZone
	if known {
		err = do(zone.Provider)
	}
	if err != nil {
		return fmt.Errorf("%s TXT record %s in zone %s: %w", doing, at.Name, at.Zone, err)
	}
	return nil
}

// canonical returns a name in this package's form.
func canonical(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// systemResolver returns the first resolver of the system, or the one on the host itself.
func systemResolver() string {
	system, err := dns.ClientConfigFromFile("/etc/resolv.conf")
	if err != nil || len(system.Servers) == 0 {
		return "127.0.0.1:53"
	}
	return net.JoinHostPort(system.Servers[0], system.Port)
}
