// Package dns writes the TXT records by which a certificate authority sees that a domain is ours (RFC 8555, section 8.4), through
// the services that hold the zones: [Azure] DNS, and name servers that take dynamic updates ([RFC2136]).
//
// It promises that values of others under the same name stay as they are, whoever writes at the same time; that an alias (CNAME) of
// the name is followed to the zone where it leads; and that Await returns only when the zone's own name servers give the value. All
// calls can be repeated. Which records there are, it does not remember: the caller keeps the places and takes them away.
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

// These errors are told apart with errors.Is.
var (
	// ErrNoZone: no zone is known that holds the name.
	ErrNoZone = errors.New("no zone for the name")
	// ErrForbidden: the zone's service refuses the identity or the key. A new role or key takes minutes to arrive.
	ErrForbidden = errors.New("forbidden")
	// ErrRefused: the zone's service does not take the change; repeating it cannot help.
	ErrRefused = errors.New("refused")
	// ErrUnavailable: the zone's service, or a name server, gives no usable answer; repeat it.
	ErrUnavailable = errors.New("unavailable")
	// ErrNotServed: the zone's name servers do not give the value yet.
	ErrNotServed = errors.New("not served")
)

// recordTTL is the time to live of new records, in seconds.
const recordTTL = 60

// What Config leaves open.
const (
	DefaultPollInterval = 2 * time.Second
	DefaultTimeout      = 2 * time.Minute
)

// queryTimeout bounds one exchange with a name server.
const queryTimeout = 5 * time.Second

// Provider changes the TXT records of a zone. Names are fully qualified, in lower case and without the final dot. Implementations
// are safe for concurrent use, also by several processes. Errors are those of this package.
type Provider interface {
	// Add adds a value beside those that the name has; it may have it already.
	Add(ctx context.Context, name, value string) error
	// Remove takes a value away and leaves the others; it need not be there.
	Remove(ctx context.Context, name, value string) error
}

// Zone is a zone that can be changed.
type Zone struct {
	// Provider changes it. Required.
	Provider Provider
	// Nameservers are asked whether they give a value, as host:port; those that the zone names, on port 53, when there are none here.
	Nameservers []string
}

// Config is what Zones needs.
type Config struct {
	// Zones are those that can be changed, by name. Of several that hold a name, the longest is meant.
	Zones map[string]Zone
	// Resolver answers questions about the rest of the world, as host:port; the first of /etc/resolv.conf when "".
	Resolver string
	// PollInterval is the pause between two looks of Await, Timeout how long it looks; DefaultPollInterval and DefaultTimeout when 0.
	PollInterval, Timeout time.Duration
}

// Validate names everything that is wrong.
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

// New validates config. It sends nothing yet.
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

// Place is where a record belongs.
type Place struct {
	// Zone is one of Config.Zones, Name the record's name in it, where aliases lead to.
	Zone, Name string
}

// Find follows aliases of a name to the zone that holds it. ErrNoZone says that they lead out of all zones.
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

// Remove takes a value away; it need not be there.
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

// canonical is a name as this package writes it.
func canonical(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// systemResolver is the first of the system's, or the one that a host without any has itself.
func systemResolver() string {
	system, err := dns.ClientConfigFromFile("/etc/resolv.conf")
	if err != nil || len(system.Servers) == 0 {
		return "127.0.0.1:53"
	}
	return net.JoinHostPort(system.Servers[0], system.Port)
}
