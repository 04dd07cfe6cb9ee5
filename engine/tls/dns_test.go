package tls_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/internal/named"
	"github.com/vibedata/roundhouse/internal/pebble"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/dns"
	"github.com/vibedata/roundhouse/tables"
)

// nameServer returns a real name server for example.test, and a client that changes its zone.
func nameServer(t *testing.T) (*named.Server, *dns.Zones) {
	t.Helper()
	server, err := named.Start(t.Context(), named.Config{Zones: map[string]string{"example.test": "* IN A 127.0.0.1"}})
	testenv.Started(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	provider, err1 := dns.NewRFC2136("example.test", server.Address(), dns.Key{Name: named.KeyName,
		Secret: func(context.Context) ([]byte, error) { return []byte(server.Secret), nil }})
	zones, err2 := dns.New(dns.Config{Resolver: server.Address(), PollInterval: 5 * time.Millisecond,
		Zones: map[string]dns.Zone{"example.test": {Provider: provider, Nameservers: []string{server.Address()}}}})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return server, zones
}

// records counts the TXT records of a domain's challenges.
func records(t *testing.T, server *named.Server, domain string) int {
	t.Helper()
	question := new(mdns.Msg)
	question.SetQuestion("_acme-challenge."+domain+".", mdns.TypeTXT)
	reply, _, err := (&mdns.Client{Net: "tcp"}).ExchangeContext(t.Context(), question, server.Address())
	if err != nil {
		t.Fatal(err)
	}
	return len(reply.Answer)
}

// From the queue message to a wildcard certificate that targets serve: the authority queries a real name server,
// which was updated.
func TestAWildcard(t *testing.T) {
	t.Parallel()
	server, zones := nameServer(t)
	w := newWorld(t, pebble.Options{Resolver: server.Address()}, 2)
	w.zones = zones
	p := w.pipeline(t)
	for _, id := range []string{"c1", "c2"} {
		entries := w.handle(t, p, id, message(id, `{"domains":["*.example.test","example.test"],"force":true}`))
		if got := rows(entries); got != "distribute Succeeded, distribute Succeeded, renew Succeeded" {
			t.Fatalf("history: %s; %+v", got, w.pipeline(t).DeadLetters(tls.Engine))
		}
	}
	if n := records(t, server, "example.test"); n != 0 || len(w.targets[1].Told()) != 2 {
		t.Errorf("%d records are left, told %d times", n, len(w.targets[1].Told()))
	}
}

// After a crash at any point of DNS challenges, the next process gets the certificate, and after a day no record is
// left.
func TestCrashesInDNS(t *testing.T) {
	t.Parallel()
	server, zones := nameServer(t)
	calls := renewalByDNS(t, server, zones, 0, false)
	if calls < 20 {
		t.Fatalf("a renewal makes %d calls: the decorators miss some", calls)
	}
	for at := 1; at <= calls; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("call %d, taken effect %v", at, after), func(t *testing.T) {
				t.Parallel()
				renewalByDNS(t, server, zones, at, after)
			})
		}
	}
}

// renewalByDNS renews in a process that dies at a call, then in another one, and returns the number of calls of the
// first.
func renewalByDNS(t *testing.T, server *named.Server, zones *dns.Zones, at int, after bool) int {
	t.Helper()
	w := newWorld(t, pebble.Options{Resolver: server.Address()}, 0)
	w.zones = zones
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr := &trouble{die: cancel, at: at, after: after}
	name := fmt.Sprintf("d%d-%v.example.test", at, after)
	steps := w.stepsOver(t, func(next http.RoundTripper) http.RoundTripper { return dyingTransport{tr, next} }, dyingTables{w.tables, tr})
	if _, err := steps.Renew(ctx, input("j1", "*."+name)); err == nil && at > 0 {
		t.Logf("%s did not stop it", tr.what)
	}
	if out := w.renew(t, input("j1", "*."+name)); !out.Renewed {
		t.Errorf("died at %s: %+v", tr.what, out)
	}
	w.now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	w.renew(t, input("j2", "*."+name))
	page, err := w.tables.Query(t.Context(), tls.ChallengesTable, tables.Query{Partition: "dns-01"})
	if n := records(t, server, name); err != nil || n != 0 || len(page.Entities) != 0 {
		t.Errorf("died at %s: %d records and %d notes are left, %v", tr.what, n, len(page.Entities), err)
	}
	return tr.seen
}
