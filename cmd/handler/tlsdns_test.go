package main

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/engine/tls/acme"
	"github.com/vibedata/roundhouse/internal/named"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// A challenge gets its record at a real name server, by the settings: with the newest key of the vault, verified at
// the configured name servers. The settings also choose the challenge.
func TestAChallengeInDNS(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	server, err := named.Start(t.Context(), named.Config{Zones: map[string]string{"example.test": ""}})
	testenv.Started(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	zones := fmt.Sprintf(`{"example.test":{"rfc2136":{"server":%q,"key":%q,"secret":"dns-update-key"},"nameservers":[%[1]q]}}`, server.Address(), named.KeyName)
	p := platformWith(zonesSetting, zones, resolverSetting, server.Address(), challengeSetting, byDNS)
	store := tables.NewMemory()
	for _, table := range []string{secrets.DevelopmentTable, tls.ChallengesTable} {
		testenv.OK(t, store.CreateTable(t.Context(), table))
	}
	vault := secrets.NewDevelopment(store)
	p.Tables, p.Secrets = store, vault
	solvers := solversOf(p, acme.HTTP01{Tables: store}, true)
	if err := p.Settings.Err(); err != nil || len(solvers) != 1 || solvers[0].Type() != byDNS {
		t.Fatalf("%d solvers, %v", len(solvers), err)
	}
	challenge := acme.Challenge{Domain: "example.test", RecordName: "_acme-challenge.example.test", RecordValue: "value"}
	if err := solvers[0].Present(t.Context(), challenge); err == nil {
		t.Error("presented without a key in the vault")
	}
	testenv.Must(vault.Add(t.Context(), "dns-update-key", []byte(server.Secret), nil))(t)
	testenv.OK(t, solvers[0].Present(t.Context(), challenge))
	for _, want := range []int{1, 0} {
		question := new(dns.Msg)
		question.SetQuestion("_acme-challenge.example.test.", dns.TypeTXT)
		reply, _, err := (&dns.Client{Net: "tcp"}).ExchangeContext(t.Context(), question, server.Address())
		if err != nil || len(reply.Answer) != want {
			t.Errorf("%v, %v, want %d records", reply, err, want)
		}
		if err := solvers[0].CleanUp(t.Context(), challenge); err != nil {
			t.Error(err)
		}
	}
	if both := solversOf(platformWith(zonesSetting, zones), acme.HTTP01{}, true); len(both) != 2 || both[0].Type() != byHTTP {
		t.Errorf("%d solvers without a choice", len(both))
	}
}
