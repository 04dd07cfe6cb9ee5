package dns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/named"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/dns"
)

const challenge = "_acme-challenge.www.example.test"

// Values are added and removed next to others, also concurrently, and all calls can be repeated.
func TestUpdates(t *testing.T) {
	t.Parallel()
	server := serve(t, named.Config{Zones: map[string]string{"example.test": "_acme-challenge.www IN TXT \"of somebody else\""}})
	var writers sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		p := zoneAt(t, "example.test", server)
		writers.Go(func() {
			value := fmt.Sprint("value-", i)
			errs[i] = errors.Join(p.Add(t.Context(), challenge, value), p.Add(t.Context(), challenge, value))
			if i%2 == 0 {
				errs[i] = errors.Join(errs[i], p.Remove(t.Context(), challenge, value), p.Remove(t.Context(), challenge, value))
			}
		})
	}
	writers.Wait()
	testenv.OK(t, errors.Join(errs...))
	testenv.Equal(t, "", []string{"of somebody else", "value-1", "value-3", "value-5", "value-7"}, texts(t, server.Address(), challenge))
}

// A refusal has a remedy, and no error contains the secret.
func TestUpdatesThatAreRefused(t *testing.T) {
	t.Parallel()
	server := serve(t, named.Config{Zones: map[string]string{"example.test": ""}})
	with := func(change func(*dns.Key)) dns.Key {
		key := keyOf(server)
		change(&key)
		return key
	}
	text := func(value string) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) { return []byte(value), nil }
	}
	gone := fmt.Sprint("127.0.0.1:", testenv.Port(t))
	for _, c := range []struct {
		what, zone, server, name string
		key                      dns.Key
		want                     error
	}{
		{"another key", "example.test", server.Address(), challenge, with(func(k *dns.Key) { k.Secret = text("c2VjcmV0LXNlY3JldA==") }), dns.ErrForbidden},
		{"a key that nobody knows", "example.test", server.Address(), challenge, with(func(k *dns.Key) { k.Name = "nobody" }), dns.ErrForbidden},
		{"a zone of others", "example.org", server.Address(), "_acme-challenge.example.org", keyOf(server), dns.ErrForbidden},
		{"a name outside of the zone", "example.test", server.Address(), "www.example.org", keyOf(server), dns.ErrRefused},
		{"no base64", "example.test", server.Address(), challenge, with(func(k *dns.Key) { k.Secret = text("c2VjcmV0!") }), dns.ErrRefused},
		{"nobody there", "example.test", gone, challenge, keyOf(server), dns.ErrUnavailable},
	} {
		p, err := dns.NewRFC2136(c.zone, c.server, c.key)
		if err != nil {
			t.Fatal(err)
		}
		err = p.Add(t.Context(), c.name, "v")
		if !errors.Is(err, c.want) || strings.Contains(err.Error(), "c2VjcmV0") || strings.Contains(err.Error(), server.Secret) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	vault := errors.New("the vault is away")
	p, err := dns.NewRFC2136("example.test", server.Address(), with(func(k *dns.Key) { k.Secret = func(context.Context) ([]byte, error) { return nil, vault } }))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Add(t.Context(), challenge, "v"); !errors.Is(err, vault) {
		t.Errorf("a key that cannot be read: %v", err)
	}
}

// Aliases lead to the zone that holds the record; the longest zone is used.
func TestFind(t *testing.T) {
	t.Parallel()
	server := serve(t, named.Config{Zones: map[string]string{
		"example.test": "_acme-challenge.api IN CNAME api.validation.test.\n_acme-challenge.far IN CNAME x.elsewhere.test.\n" +
			"loop1 IN CNAME loop2\nloop2 IN CNAME loop1",
		"validation.test":  "api IN CNAME api.deep",
		"elsewhere.test":   "",
		"sub.example.test": "",
	}})
	zones, err := dns.New(dns.Config{Resolver: server.Address(), Zones: map[string]dns.Zone{
		"example.test": {Provider: zoneAt(t, "example.test", server)}, "validation.test": {Provider: zoneAt(t, "validation.test", server)},
		"sub.example.test": {Provider: zoneAt(t, "sub.example.test", server)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]dns.Place{
		challenge:                              {Zone: "example.test", Name: challenge},
		"_ACME-challenge.Example.test.":        {Zone: "example.test", Name: "_acme-challenge.example.test"},
		"_acme-challenge.api.example.test":     {Zone: "validation.test", Name: "api.deep.validation.test"},
		"_acme-challenge.www.sub.example.test": {Zone: "sub.example.test", Name: "_acme-challenge.www.sub.example.test"},
	} {
		got, err := zones.Find(t.Context(), name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, want := range map[string]error{"_acme-challenge.far.example.test": dns.ErrNoZone, "www.example.org": dns.ErrNoZone, "loop1.example.test": dns.ErrRefused} {
		if got, err := zones.Find(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if err := zones.Add(t.Context(), dns.Place{Zone: "gone.test", Name: "x.gone.test"}, "v"); !errors.Is(err, dns.ErrNoZone) {
		t.Errorf("a zone that is gone: %v", err)
	}
}

// Await returns when all answering name servers return the value: it waits for the secondary's transfer.
func TestAwait(t *testing.T) {
	t.Parallel()
	primary := serve(t, named.Config{Zones: map[string]string{"example.test": ""}})
	secondary := serve(t, named.Config{Of: primary})
	gone := fmt.Sprint("127.0.0.1:", testenv.Port(t))
	at := dns.Place{Zone: "example.test", Name: challenge}
	open := func(timeout time.Duration, servers ...string) *dns.Zones {
		t.Helper()
		zones, err := dns.New(dns.Config{Resolver: primary.Address(), PollInterval: 10 * time.Millisecond, Timeout: timeout,
			Zones: map[string]dns.Zone{"example.test": {Provider: zoneAt(t, "example.test", primary), Nameservers: servers}}})
		if err != nil {
			t.Fatal(err)
		}
		return zones
	}
	both := open(time.Minute, primary.Address(), gone, secondary.Address())
	testenv.OK(t, both.Add(t.Context(), at, "v1"))
	if err := both.Await(t.Context(), at, "v1"); err != nil || !slices.Equal(texts(t, secondary.Address(), challenge), []string{"v1"}) {
		t.Errorf("the secondary has %v: %v", texts(t, secondary.Address(), challenge), err)
	}
	if err := open(5*time.Second, secondary.Address()).Await(t.Context(), at, "v2"); !errors.Is(err, dns.ErrNotServed) || !strings.Contains(err.Error(), secondary.Address()) {
		t.Errorf("a value that is not there: %v", err)
	}
	if err := open(time.Second, gone).Await(t.Context(), at, "v1"); !errors.Is(err, dns.ErrUnavailable) || !strings.Contains(err.Error(), gone) {
		t.Errorf("no name server: %v", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	_, err := dns.New(dns.Config{Resolver: "resolver", Zones: map[string]dns.Zone{"Example.test.": {}, "example.test": {Nameservers: []string{"ns1"}}}})
	for _, want := range []string{`"resolver"`, `"Example.test."`, "example.test: Provider", `"ns1"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	_, err = dns.NewRFC2136("example.test", "ns1", dns.Key{Algorithm: "hmac-md5"})
	for _, want := range []string{`"ns1"`, "hmac-md5", "name is missing", "secret is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
