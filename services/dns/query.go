package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// maxAliases bounds a chain of aliases.
const maxAliases = 8

// follow returns the target of a name's aliases; the name itself without any.
func (z *Zones) follow(ctx context.Context, name string) (string, error) {
	for range maxAliases {
		reply, err := ask(ctx, z.config.Resolver, name, dns.TypeCNAME, true)
		if err != nil {
			return "", err
		}
		at := slices.IndexFunc(reply.Answer, func(r dns.RR) bool {
			_, alias := r.(*dns.CNAME)
			return alias && canonical(r.Header().Name) == name
		})
		if at < 0 {
			return name, nil
		}
		if alias, ok := reply.Answer[at].(*dns.CNAME); ok {
			name = canonical(alias.Target)
		}
	}
	return "", fmt.Errorf("%w: there are more than %d", ErrRefused, maxAliases)
}

// Await returns when the zone's name servers return the value: at least one, and all that answer. ErrNotServed names
// the one that does not.
func (z *Zones) Await(ctx context.Context, at Place, value string) error {
	ctx, cancel := context.WithTimeout(ctx, z.config.Timeout)
	defer cancel()
	tick := time.NewTicker(z.config.PollInterval)
	defer tick.Stop()
	var last error
	for {
		err := z.look(ctx, at, value)
		if err == nil {
			return nil
		}
		if last == nil || !errors.Is(err, ErrUnavailable) {
			last = err // the last look may have had no time, and then has no information
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for TXT record %s: %w", at.Name, last)
		}
	}
}

// look queries each of the zone's name servers once.
func (z *Zones) look(ctx context.Context, at Place, value string) error {
	servers, err := z.nameservers(ctx, at.Zone)
	if err != nil {
		return err
	}
	var silent []error
	for _, server := range servers {
		values, err := texts(ctx, server, at.Name)
		if err != nil {
			silent = append(silent, fmt.Errorf("ask %s: %w", server, err))
			continue
		}
		if !slices.Contains(values, value) {
			return fmt.Errorf("%w by %s", ErrNotServed, server)
		}
	}
	if len(silent) == len(servers) {
		return errors.Join(append(silent, fmt.Errorf("%w: no name server of zone %s answers", ErrUnavailable, at.Zone))...)
	}
	return nil
}

// nameservers returns those to query about a zone.
func (z *Zones) nameservers(ctx context.Context, zone string) ([]string, error) {
	if named := z.config.Zones[zone].Nameservers; len(named) > 0 {
		return named, nil
	}
	reply, err := ask(ctx, z.config.Resolver, zone, dns.TypeNS, true)
	if err != nil {
		return nil, fmt.Errorf("look up the name servers of zone %s: %w", zone, err)
	}
	var servers []string
	for _, r := range reply.Answer {
		if ns, ok := r.(*dns.NS); ok {
			servers = append(servers, net.JoinHostPort(canonical(ns.Ns), "53"))
		}
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%w: zone %s names no name servers", ErrUnavailable, zone)
	}
	return servers, nil
}

// texts returns the values of a name's TXT records at one server.
func texts(ctx context.Context, server, name string) ([]string, error) {
	reply, err := ask(ctx, server, name, dns.TypeTXT, false)
	if err != nil {
		return nil, err
	}
	var values []string
	for _, r := range reply.Answer {
		if txt, ok := r.(*dns.TXT); ok && canonical(r.Header().Name) == name {
			values = append(values, strings.Join(txt.Txt, ""))
		}
	}
	return values, nil
}

// ask sends one query over TCP, which detects a missing server immediately and has complete answers. A missing name is
// an answer.
func ask(ctx context.Context, server, name string, kind uint16, recursive bool) (*dns.Msg, error) {
	question := new(dns.Msg)
	question.SetQuestion(dns.Fqdn(name), kind)
	question.RecursionDesired = recursive
	client := dns.Client{Net: "tcp", Timeout: queryTimeout}
	reply, _, err := client.ExchangeContext(ctx, question, server)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError {
		return nil, fmt.Errorf("%w: %s answers %s", ErrUnavailable, server, dns.RcodeToString[reply.Rcode])
	}
	return reply, nil
}
