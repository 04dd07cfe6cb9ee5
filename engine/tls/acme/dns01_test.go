package acme_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/internal/named"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/dns"
	"github.com/vibedata/roundhouse/tables"
)

// zones are the zones of these tests: one of domains, one for delegated challenges, and one of others.
var zones = map[string]string{
	"example.test":    "@ IN A 127.0.0.1\n* IN A 127.0.0.1\nalias IN A 127.0.0.1\nlost IN A 127.0.0.1\n_acme-challenge.alias IN CNAME alias.validation.test.\n_acme-challenge.lost IN CNAME x.somewhere.test.",
	"validation.test": "",
	"somewhere.test":  "",
}

// byDNS returns a world whose authority queries a real name server, and the solver that updates it.
func byDNS(t *testing.T, now func() time.Time) (*world, *named.Server, acme.DNS01) {
	t.Helper()
	server, err := named.Start(t.Context(), named.Config{Zones: zones})
	testenv.Started(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	config := dns.Config{Resolver: server.Address(), PollInterval: 5 * time.Millisecond, Zones: map[string]dns.Zone{}}
	for _, zone := range []string{"example.test", "validation.test"} {
		p, err := dns.NewRFC2136(zone, server.Address(), dns.Key{Name: named.KeyName, Algorithm: named.Algorithm,
			Secret: func(context.Context) ([]byte, error) { return []byte(server.Secret), nil }})
		if err != nil {
			t.Fatal(err)
		}
		config.Zones[zone] = dns.Zone{Provider: p, Nameservers: []string{server.Address()}}
	}
	all, err := dns.New(config)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, pebble.Options{Resolver: server.Address()})
	return w, server, acme.DNS01{Tables: w.tables, Zones: all, Now: now}
}

// left counts the leftovers of challenges: records at the name server, and rows.
func (w *world) left(t *testing.T, server *named.Server, names ...string) (records, notes int) {
	t.Helper()
	for _, name := range names {
		question := new(mdns.Msg)
		question.SetQuestion(name+".", mdns.TypeTXT)
		reply, _, err := (&mdns.Client{Net: "tcp"}).ExchangeContext(t.Context(), question, server.Address())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range reply.Answer {
			if r.Header().Rrtype == mdns.TypeTXT {
				records++
			}
		}
	}
	page, err := w.tables.Query(t.Context(), tls.ChallengesTable, tables.Query{Partition: "dns-01"})
	if err != nil {
		t.Fatal(err)
	}
	return records, len(page.Entities)
}

// A wildcard, its domain, and a domain that delegates its challenges get a certificate, also by two concurrent
// orders.
func TestIssueByDNS(t *testing.T) {
	t.Parallel()
	w, server, solver := byDNS(t, nil)
	domains := []string{"*.example.test", "example.test", "alias.example.test"}
	var orders sync.WaitGroup
	chains, errs := make([][][]byte, 2), make([]error, 2)
	for i := range chains {
		a := w.authority(t, w.http01, solver)
		orders.Go(func() { chains[i], errs[i] = obtain(t, a, nil, domains...) })
	}
	orders.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, chain := range chains {
		w.checkChain(t, chain, domains...)
	}
	if chain, err := obtain(t, w.authority(t, solver), nil, domains...); err != nil {
		t.Errorf("by dns-01 alone: %v", err)
	} else {
		w.checkChain(t, chain, domains...)
	}
	if records, notes := w.left(t, server, "_acme-challenge.example.test", "alias.validation.test"); records+notes > 0 {
		t.Errorf("%d records and %d notes are left behind", records, notes)
	}
}

// A challenge outside of all zones is refused, and the error names its target.
func TestAChallengeOutOfAllZones(t *testing.T) {
	t.Parallel()
	w, _, solver := byDNS(t, nil)
	_, err := obtain(t, w.authority(t, solver), nil, "lost.example.test")
	if !errors.Is(err, tls.ErrRefused) || !strings.Contains(err.Error(), "x.somewhere.test, where _acme-challenge.lost.example.test leads") {
		t.Errorf("%v", err)
	}
}

// A dead process leaves a record with its row: the record is removed when it cannot be in use any longer, and the row
// of a record in an unconfigured zone is deleted after a month.
func TestRecordsThatWereLeft(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w, server, solver := byDNS(t, func() time.Time { return now })
	other, err := dns.New(dns.Config{Resolver: server.Address(), Zones: map[string]dns.Zone{}})
	if err != nil {
		t.Fatal(err)
	}
	const name = "_acme-challenge.www.example.test"
	for _, value := range []string{"first", "second"} {
		if err := solver.Present(t.Context(), acme.Challenge{Domain: "www.example.test", RecordName: name, RecordValue: value}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(20 * time.Hour)
	}
	gone := solver
	gone.Zones = other
	for i, c := range []struct {
		after          time.Duration
		solver         acme.DNS01
		failing        bool
		records, notes int
	}{
		{0, solver, false, 1, 1},
		{20 * time.Hour, gone, true, 1, 1},
		{28 * 24 * time.Hour, gone, true, 1, 1},
		{2 * 24 * time.Hour, gone, false, 1, 0},
	} {
		now = now.Add(c.after)
		err := c.solver.Tidy(t.Context())
		if records, notes := w.left(t, server, name); (err != nil) != c.failing || records != c.records || notes != c.notes {
			t.Errorf("%d: %d records, %d notes, %v", i, records, notes, err)
		}
	}
}
