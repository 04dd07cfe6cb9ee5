package settings

import (
	"strings"
	"testing"
)

func TestPublicURL(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set, host string
		want, err string
	}{
		"nothing":                     {"", "", "", ""},
		"Azure":                       {"", "app.azurewebsites.net", "https://app.azurewebsites.net", ""},
		"a host in development":       {"", "localhost:7071", "http://localhost:7071", ""},
		"an address of one":           {"", "127.0.0.1:7071", "http://127.0.0.1:7071", ""},
		"a domain of one's own":       {"https://app.example.com/", "app.azurewebsites.net", "https://app.example.com", ""},
		"with a port":                 {"https://app.example.com:8443", "", "https://app.example.com:8443", ""},
		"this machine":                {"http://localhost:8080", "", "http://localhost:8080", ""},
		"in clear":                    {"http://app.example.com", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"no address":                  {"app.example.com", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"with a path":                 {"https://app.example.com/api", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"with a query":                {"https://app.example.com?code=hidden", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"with a user":                 {"https://user:hidden@app.example.com", "", "", "ROUNDHOUSE_PUBLIC_URL"},
		"a host that is more than it": {"", "app.example.com/x", "", "WEBSITE_HOSTNAME"},
		"a host with a user":          {"", "x@app.example.com", "", "WEBSITE_HOSTNAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Load(NewReader(emulator.With("ROUNDHOUSE_PUBLIC_URL", tt.set, "WEBSITE_HOSTNAME", tt.host).Lookup))
			if tt.err == "" && (err != nil || s.PublicURL != tt.want) {
				t.Errorf("%q, %v, want %q", s.PublicURL, err, tt.want)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}
