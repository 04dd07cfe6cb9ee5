package handler_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/tables"
)

// rowsOf counts the rows of the engine gates in a table, those of the index apart; a table that is not there has none.
func rowsOf(t *testing.T, store tables.Store, table string) (n int) {
	t.Helper()
	for e, err := range tables.All(t.Context(), store, table, tables.Query{Partition: "gates"}) {
		if errors.Is(err, tables.ErrNotFound) {
			return 0
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(e.Row, "~") {
			n++
		}
	}
	return n
}

// The app's own document in the registry has the standard's engineTablesConfig from the first start on, whatever the app's instance is
// called, and what a person changes there takes effect.
func TestEngineTablesConfig(t *testing.T) {
	t.Parallel()
	for own, settings := range map[string]map[string]string{"publisher": nil, "i1": {"ROUNDHOUSE_INSTANCE_ID": "i1", "ROUNDHOUSE_TENANT_ID": "contoso"}} {
		t.Run(own, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := handlertest.New(t, handler.App{Engines: gates}, settings)
				document, err := registry.New(h.Tables, "").Get(t.Context(), own)
				if err != nil {
					t.Fatal(err)
				}
				want := &registry.EngineTablesConfig{StorageAccountName: "devstoreaccount1", DlqTableName: "engineDlq", HistoryTableName: "engineHistory", RetentionDays: 90}
				if diff := cmp.Diff(want, document.EngineTablesConfig); diff != "" {
					t.Errorf("engineTablesConfig (-want +got):\n%s", diff)
				}
				change := `{"engineTablesConfig":{"dlqTableName":"letters","historyTableName":"past","retentionDays":7}}`
				if status, answer := h.Do(http.MethodPatch, "/api/registry/"+own, change); status != http.StatusOK {
					t.Fatalf("%d %s", status, answer)
				}
				h.Restart(settings, func(*handler.Config) {})
				h.Send("gates-queue", `{"correlationId":"well","input":"front"}`)
				h.Send("gates-queue", `{"correlationId":"ill","input":"stuck"}`)
				h.Deliver()
				placed := func() map[string]int {
					got := map[string]int{}
					for _, table := range []string{"letters", "past", "engineDlq", "engineHistory"} {
						got[table] = rowsOf(t, h.Tables, table)
					}
					return got
				}
				if diff := cmp.Diff(map[string]int{"letters": 1, "past": 2, "engineDlq": 0, "engineHistory": 0}, placed()); diff != "" {
					t.Errorf("rows (-want +got):\n%s", diff)
				}
				for _, wait := range []struct {
					days, past int
				}{{6, 2}, {2, 0}} {
					time.Sleep(time.Duration(wait.days) * 24 * time.Hour)
					if !h.Tick("history-retention-timer", time.Now()) {
						t.Error("the retention has failed")
					}
					if got := placed()["past"]; got != wait.past {
						t.Errorf("%d days later there are %d entries, want %d", wait.days, got, wait.past)
					}
				}
			})
		})
	}
}
