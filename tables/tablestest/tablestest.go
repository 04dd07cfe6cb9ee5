// Package tablestest tests the promises of a tables.Store and the limits of the service: one suite for every
// implementation.
package tablestest

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vibedata/roundhouse/tables"
)

// Run runs the suite. open returns a store; it may be the same one each time, since every test makes its own table.
func Run(t *testing.T, open func(t *testing.T) tables.Store) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, env)
	}{
		{"CreateTable", testCreateTable},
		{"MissingTable", testMissingTable},
		{"Insert", testInsert},
		{"Replace", testReplace},
		{"Upsert", testUpsert},
		{"Delete", testDelete},
		{"ETags", testETags},
		{"Copies", testCopies},
		{"Cancelled", testCancelled},
		{"Types", testTypes},
		{"Doubles", testDoubles},
		{"Text", testText},
		{"Keys", testKeys},
		{"RaceForKey", testRaceForKey},
		{"Transaction", testTransaction},
		{"TransactionFails", testTransactionFails},
		{"TransactionRules", testTransactionRules},
		{"RaceOfTransactions", testRaceOfTransactions},
		{"RequestSize", testRequestSize},
		{"PropertySize", testPropertySize},
		{"EntitySize", testEntitySize},
		{"PropertyCount", testPropertyCount},
		{"PropertyNames", testPropertyNames},
		{"KeySize", testKeySize},
		{"Sweep", testSweep},
		{"QuerySweep", testQuerySweep},
		{"BadEntities", testBadEntities},
		{"RowRange", testRowRange},
		{"KeyOrder", testKeyOrder},
		{"Where", testWhere},
		{"Select", testSelect},
		{"Pages", testPages},
		{"ManyRows", testManyRows},
		{"BadQueries", testBadQueries},
		{"Scan", testScan},
		{"ScanSelect", testScanSelect},
		{"ScanPages", testScanPages},
		{"ScanPastManyRows", testScanPastManyRows},
		{"ScanKeys", testScanKeys},
		{"ScanPrefix", testScanPrefix},
		{"ScanContinuations", testScanContinuations},
		{"BadScans", testBadScans},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := env{store: open(t), table: "t" + strings.ToLower(rand.Text())}
			if err := e.store.CreateTable(t.Context(), e.table); err != nil {
				t.Fatal(err)
			}
			test.run(t, e)
		})
	}
}

// env is a store with a table of this test.
type env struct {
	store tables.Store
	table string
}

func (e env) apply(t *testing.T, ops ...tables.Op) error {
	t.Helper()
	return e.store.Apply(t.Context(), e.table, ops...)
}

func (e env) mustApply(t *testing.T, ops ...tables.Op) {
	t.Helper()
	if err := e.apply(t, ops...); err != nil {
		t.Fatal(err)
	}
}

func (e env) mustGet(t *testing.T, key tables.Key) tables.Entity {
	t.Helper()
	got, err := e.store.Get(t.Context(), e.table, key)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// rows returns the row keys of a query, over all pages.
func (e env) rows(t *testing.T, q tables.Query) []string {
	t.Helper()
	var rows []string
	for entity, err := range tables.All(t.Context(), e.store, e.table, q) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, entity.Row)
	}
	return rows
}

// partitions returns the partition keys of a scan, over all pages.
func (e env) partitions(t *testing.T, s tables.Scan) []string {
	t.Helper()
	var partitions []string
	for entity, err := range tables.ScanAll(t.Context(), e.store, e.table, s) {
		if err != nil {
			t.Fatal(err)
		}
		if !s.AnyRow && entity.Row != s.Row {
			t.Errorf("a scan for row %q found %v", s.Row, entity.Key)
		}
		partitions = append(partitions, entity.Partition)
	}
	return partitions
}

func entity(partition, row string, properties ...any) tables.Entity {
	e := tables.Entity{Key: tables.Key{Partition: partition, Row: row}, Properties: map[string]any{}}
	for i := 0; i < len(properties); i += 2 {
		e.Properties[properties[i].(string)] = properties[i+1]
	}
	return e
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// wantOpError also checks the index of the failed operation.
func wantOpError(t *testing.T, what string, err, want error, index int) {
	t.Helper()
	wantError(t, what, err, want)
	var op *tables.OpError
	if !errors.As(err, &op) || op.Index != index {
		t.Errorf("%s: got error %v, want an OpError of operation %d", what, err, index)
	}
}

func wantProperties(t *testing.T, what string, got tables.Entity, want map[string]any) {
	t.Helper()
	if diff := cmp.Diff(want, got.Properties, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: properties differ (-want +got):\n%s", what, diff)
	}
}
