package dns_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/named"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/dns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a name server that ends with the test. -short skips the test.
func serve(t *testing.T, c named.Config) *named.Server {
	t.Helper()
	testenv.Long(t)
	s, err := named.Start(t.Context(), c)
	testenv.Started(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// keyOf returns a server's key.
func keyOf(s *named.Server) dns.Key {
	return dns.Key{Name: named.KeyName, Algorithm: named.Algorithm, Secret: func(context.Context) ([]byte, error) { return []byte(s.Secret), nil }}
}

// zoneAt returns a provider for a zone at its server.
func zoneAt(t *testing.T, zone string, s *named.Server) dns.Provider {
	t.Helper()
	return testenv.Must(dns.NewRFC2136(zone, s.Address(), keyOf(s)))(t)
}

// texts returns the TXT records of a name at a server, sorted.
func texts(t *testing.T, server, name string) []string {
	t.Helper()
	question := new(mdns.Msg)
	question.SetQuestion(mdns.Fqdn(name), mdns.TypeTXT)
	client := mdns.Client{Net: "tcp", Timeout: time.Hour}
	reply, _, err := client.ExchangeContext(t.Context(), question, server)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, r := range reply.Answer {
		if txt, ok := r.(*mdns.TXT); ok {
			values = append(values, strings.Join(txt.Txt, ""))
		}
	}
	slices.Sort(values)
	return values
}
