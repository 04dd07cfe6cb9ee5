package tls

import "testing"

// Targets are checked under a name that the certificate covers, as by clients.
func TestServerName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target  Target
		domains []string
		want    string
	}{
		{Target{Address: "www.example.com:443"}, []string{"example.com", "www.example.com"}, "www.example.com"},
		{Target{Address: "gateway.internal:443"}, []string{"example.com", "www.example.com"}, "example.com"},
		{Target{Address: "10.0.0.4:443"}, []string{"www.example.com"}, "www.example.com"},
		{Target{Address: "Api.example.com:443"}, []string{"*.example.com"}, "Api.example.com"},
		{Target{Address: "a.b.example.com:443"}, []string{"*.example.com"}, "www.example.com"},
		{Target{Address: "example.com:443"}, []string{"*.example.com"}, "www.example.com"},
		{Target{Address: "10.0.0.4:443", ServerName: "other.example.com"}, []string{"*.example.com"}, "other.example.com"},
	} {
		if got := serverName(c.target, Certificate{Domains: c.domains}); got != c.want {
			t.Errorf("%+v, %v: %s", c.target, c.domains, got)
		}
	}
}
