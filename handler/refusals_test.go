package handler_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/access/accesstest"
)

// Refused changes do not fill the audit log. At all entry points together, a caller has 20 entries, then one a
// minute that counts the skipped ones. All people of another tenant are one caller; their refusals do not affect
// other callers.
func TestRefusalsInTheAuditLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		who  func(n int) accesstest.Caller
		kind string
	}{
		"one person": {func(int) accesstest.Caller { return accesstest.Caller{Tenant: "home", Object: "eve", Name: "eve"} }, "principal"},
		"many people of a tenant": {func(n int) accesstest.Caller {
			return accesstest.Caller{Tenant: "red", Object: fmt.Sprint("eve", n), Name: "token=ghp_0123456789abcdefghijABCDEFGHIJ012345"}
		}, "tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMarketWith(t, "20000", func(*handler.Config) {})
				log := audit.Log{Tables: m.Tables}
				entries := func() []audit.Entry {
					page, err := log.List(t.Context(), audit.Filter{}, audit.MaxLimit, "")
					if err != nil {
						t.Fatal(err)
					}
					return page.Entries
				}
				paths := []string{"/api/dlq/retry", "/api/orchestrations/shop-blue-waits/terminate", "/api/runtime/webhooks/durabletask/instances/shop-blue-waits/terminate"}
				refuse := func(n int, who accesstest.Caller) {
					if status, answer := m.Do(http.MethodPost, paths[n%len(paths)], `{"reason":"x"}`, who.Sign); status != http.StatusForbidden && status != http.StatusNotFound {
						t.Fatalf("%d %s", status, answer)
					}
				}
				for n := range 300 {
					refuse(n, c.who(n))
				}
				if got := entries(); len(got) != 20 || strings.Contains(fmt.Sprint(got), "ghp_") {
					t.Errorf("%d entries of 300 refusals", len(got))
				}
				refuse(0, accesstest.Caller{Tenant: "blue", Object: "bob", Name: "bob"})
				if got := entries(); len(got) != 21 {
					t.Errorf("another caller has no entry: %d", len(got))
				}
				time.Sleep(time.Minute)
				for n := range 300 {
					refuse(n, c.who(n))
				}
				got := entries()
				if want := "(280 more refusals of this " + c.kind + " are not recorded)"; len(got) != 22 || !strings.Contains(got[0].After, want) {
					t.Errorf("%d entries, the last %+v", len(got), got[0])
				}
				if _, metrics := m.Do(http.MethodGet, "/api/metrics", "", m.home.Sign); !strings.Contains(metrics, "roundhouse_audit_refusals_skipped_total 579") {
					t.Error("the metric does not count them")
				}
			})
		})
	}
}
