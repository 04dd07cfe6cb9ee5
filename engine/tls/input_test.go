package tls_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/tls"
	"github.com/vibedata/roundhouse/services/secrets"
)

func TestInputNames(t *testing.T) {
	t.Parallel()
	many := make([]string, 101)
	for i := range many {
		many[i] = strings.Repeat("a", i/26+1) + string(rune('a'+i%26)) + ".example.com"
	}
	cases := []struct {
		what string
		in   tls.Input
		want []string
	}{
		{"one", tls.Input{Domain: "WWW.Example.com"}, []string{"www.example.com"}},
		{"several, each once", tls.Input{Domains: []string{"b.example.com", "a.example.com", "B.example.com", "*.example.com"}}, []string{"b.example.com", "a.example.com", "*.example.com"}},
		{"punycode", tls.Input{Domain: "xn--bcher-kva.example"}, []string{"xn--bcher-kva.example"}},
		{"none", tls.Input{}, nil},
		{"both", tls.Input{Domain: "a.example.com", Domains: []string{"b.example.com"}}, nil},
		{"one label", tls.Input{Domain: "localhost"}, nil},
		{"international", tls.Input{Domain: "bücher.example"}, nil},
		{"a wildcard in the middle", tls.Input{Domain: "a.*.example.com"}, nil},
		{"a path", tls.Input{Domain: "example.com/../x"}, nil},
		{"a line feed", tls.Input{Domain: "example.com\n"}, nil},
		{"an empty label", tls.Input{Domain: "a..example.com"}, nil},
		{"a long label", tls.Input{Domain: strings.Repeat("a", 64) + ".example.com"}, nil},
		{"a long name", tls.Input{Domain: strings.Repeat("abc.", 64) + "com"}, nil},
		{"too many", tls.Input{Domains: many}, nil},
	}
	for _, c := range cases {
		got, err := c.in.Names()
		if c.want == nil && !errors.Is(err, tls.ErrInput) || c.want != nil && (err != nil || !cmp.Equal(got, c.want)) {
			t.Errorf("%s: %v, %v", c.what, got, err)
		}
	}
}

func FuzzInputNames(f *testing.F) {
	f.Add("www.example.com")
	f.Add("*.a.b")
	f.Fuzz(func(t *testing.T, domain string) {
		names, err := tls.Input{Domain: domain}.Names()
		if err != nil {
			return
		}
		if len(names) != 1 || !strings.EqualFold(names[0], domain) || !secrets.ValidName(tls.CertificateName(names)) {
			t.Errorf("%q: %q", domain, names)
		}
	})
}
