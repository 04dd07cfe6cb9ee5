package tls_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/engine/tls"
)

// Names at their limits are accepted unchanged; beyond them they are refused.
func TestSizesOfInputs(t *testing.T) {
	t.Parallel()
	for n := 99; n <= 101; n++ {
		var domains []string
		for i := range n {
			domains = append(domains, fmt.Sprintf("d%d.example.org", i))
		}
		names, err := tls.Input{Domains: domains}.Names()
		if (err == nil) != (n <= 100) || err == nil && !slices.Equal(names, domains) || err != nil && !strings.Contains(err.Error(), "1 to 100") {
			t.Errorf("%d domains: %v", n, err)
		}
	}
	label := strings.Repeat("l", 63)
	long := strings.Repeat(label+".", 3)
	for n := 252; n <= 254; n++ {
		domain := long + strings.Repeat("a", n-len(long)-len(".org")) + ".org"
		if names, err := (tls.Input{Domain: domain}).Names(); (err == nil) != (n <= 253) || err == nil && names[0] != domain {
			t.Errorf("a domain of %d: %v", n, err)
		}
	}
	for n := 62; n <= 64; n++ {
		if _, err := (tls.Input{Domain: strings.Repeat("l", n) + ".org"}).Names(); (err == nil) != (n <= 63) {
			t.Errorf("a label of %d: %v", n, err)
		}
	}
}
