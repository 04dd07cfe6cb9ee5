package named_test

import (
	"testing"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/named"
	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server answers for its zones, knows no others, and leaves no files behind.
func TestStart(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	s, err := named.Start(t.Context(), named.Config{Zones: map[string]string{"example.test": "www IN TXT \"here\""}})
	testenv.Started(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, want := range map[string]int{"www.example.test.": dns.RcodeSuccess, "no.example.test.": dns.RcodeNameError, "example.org.": dns.RcodeNameError} {
		question := new(dns.Msg)
		question.SetQuestion(name, dns.TypeTXT)
		client := dns.Client{Net: "tcp"}
		reply, _, err := client.ExchangeContext(t.Context(), question, s.Address())
		if err != nil || reply.Rcode != want || (len(reply.Answer) > 0) != (want == dns.RcodeSuccess) {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
	}
}
