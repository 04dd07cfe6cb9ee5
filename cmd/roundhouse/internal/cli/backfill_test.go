package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/tables"
)

// A backfill finds all tenants with rows, registered or not, continues where it stopped, and finds nothing the
// second time.
func TestBackfill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	connection := storage.Account(t).ConnectionString()
	account, err := azure.FromConnectionString(connection)
	must(t, err)
	t.Cleanup(account.CloseIdleConnections)
	rows, err := azure.NewTables(account)
	must(t, err)
	must(t, rows.CreateTable(t.Context(), outbox.DefaultTable))
	old := func(tenant string, from, n int) {
		for i := from; i < from+n; i++ {
			must(t, rows.Apply(t.Context(), outbox.DefaultTable, tables.Insert(tables.Entity{Key: tables.Key{Partition: tables.EscapeKey(tenant), Row: fmt.Sprintf("m-%03d", i)},
				Properties: map[string]any{"Id": fmt.Sprintf("%03d", i), "TenantId": tenant, "EventType": "x", "Payload": "{}"}})))
		}
	}
	for i, tenant := range []string{"Acme", "contoso", "a/b", "\u00fcnit", "~odd"} {
		old(tenant, 0, 3+i)
	}
	backfill := func(args ...string) result {
		m, out, errs := w.main(map[string]string{storageSetting: connection})
		return result{m.Run(t.Context(), append([]string{"outbox", "backfill"}, args...)), out.String(), errs.String()}
	}
	for _, args := range [][]string{{"--slice", "0"}, {"--slice", "5000"}, {"--continue", "contoso"}, {"--continue", "/m-1"}, {"--continue", "contoso/m-1", "--tenant", "Acme"}} {
		check(t, backfill(args...), exitUsage, []string{args[0]})
	}
	check(t, backfill("--continue", "contoso/x"), exitFailed, []string{"continuation", "continue with"})
	check(t, backfill("--tenant", "contoso", "--slice", "2"), exitOK, []string{"1 tenants, 4 rows: 4 keys assigned, 4 rows indexed"})

	// It stops at an unreadable row, and continues when the row is repaired.
	check(t, backfill("--continue", "a=2Fb/m-001"), exitOK, []string{" keys assigned"})
	check(t, backfill(), exitOK, []string{"5 tenants, 25 rows: "})
	old("late", 0, 1)
	again := backfill()
	check(t, again, exitOK, []string{"6 tenants, 26 rows: 1 keys assigned, 1 rows indexed"})
	check(t, backfill("-o", "json"), exitOK, []string{`"tenants": 6`, `"assigned": 0`, `"indexed": 0`})
	if names := regexp.MustCompile(`(?m)^(\S+): `).FindAllString(again.err, -1); !strings.Contains(strings.Join(names, ""), "~odd: ") {
		t.Errorf("%q", names)
	}
}
