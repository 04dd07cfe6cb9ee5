package handler

import (
	"testing"

	"github.com/vibedata/roundhouse/azure"
)

// The account is known by its name, or by an address that has it.
func TestAccountName(t *testing.T) {
	t.Parallel()
	for want, accounts := range map[string][]azure.Account{
		"acct1": {{Name: "acct1"}, {TableEndpoint: "https://acct1.table.core.windows.net"}, {TableEndpoint: "https://acct1.table.core.chinacloudapi.cn"}},
		"":      {{}, {TableEndpoint: "https://tables.example.org"}, {TableEndpoint: "http://127.0.0.1:10002/a"}},
	} {
		for _, a := range accounts {
			if got := accountName(a); got != want {
				t.Errorf("%s: %q, want %q", a.TableEndpoint, got, want)
			}
		}
	}
}
