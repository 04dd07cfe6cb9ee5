package catalog

import (
	"context"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/fuzzvalue"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/tables"
)

// An index entry is read as it was written; each of its rows fits storage and belongs to its view, and its place
// continues every list that shows it.
func FuzzEntries(f *testing.F) {
	fuzzvalue.Seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := fuzzvalue.New(data)
		statuses := []orchestrator.Status{orchestrator.Pending, orchestrator.Running, orchestrator.Failed, orchestrator.Retrying}
		e := entry{id: s.Name(400), orchestrator: s.Text(256), tag: s.Text(256), tenant: s.Text(256), correlation: s.Text(256), status: statuses[s.Int(len(statuses)-1)], created: s.Time()}
		if len(tables.EscapeKey(e.id)) > maxEscapedID {
			return
		}
		store := tables.NewMemory()
		noError(t, store.CreateTable(context.Background(), DefaultTable))
		for _, name := range e.all() {
			if err := store.Apply(context.Background(), DefaultTable, tables.Upsert(e.row(name))); err != nil {
				t.Fatalf("row %.80q: %v", name, err)
			}
			row, err := store.Get(context.Background(), DefaultTable, key(name))
			if err != nil || row.String(columnID) != e.id {
				t.Errorf("row %.80q: %v", name, err)
			}
			if orchestratorOf := row.String(columnOrchestrator); name == statusView(e.status)+e.place() && orchestratorOf != e.orchestrator {
				t.Errorf("%q becomes %q", e.orchestrator, orchestratorOf)
			}
		}
		prefix := e.id[:len(e.id)-len(e.id)/2]
		filters := []orchestrator.Filter{{}, {TenantID: e.tenant}, {Statuses: []orchestrator.Status{e.status}}, {Prefix: e.id}}
		if strings.ToValidUTF8(prefix, "") == prefix {
			filters = append(filters, orchestrator.Filter{Prefix: prefix})
		}
		for _, filter := range filters {
			v, place := viewOf(filter), e.place()
			if v.ids {
				place = strings.TrimPrefix(idView(e.id), viewID)
			}
			if !v.has(place) {
				t.Errorf("the place %q is none of the view %+v", place, v)
			}
		}
	})
}
