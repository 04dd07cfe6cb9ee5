package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver of the database

	"github.com/vibedata/roundhouse/examples/pollers/stock"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
)

// The rows of a table become messages, each once; new rows come with the next tick; and an invalid row becomes a dead
// letter of the engine, and blocks no other.
func TestRowsBecomeMessages(t *testing.T) {
	t.Parallel()
	settings := localSettings(t)
	settings["SHOP_DSN"] = "file:" + filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", settings["SHOP_DSN"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	script, err := os.ReadFile("shop.sql")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, db, string(script))

	h := handlertest.New(t, handler.App{Engines: engines}, settings)
	tick := func(wantEntries, wantDeadLetters int) {
		t.Helper()
		if !h.Tick("poller-deliveries-timer", time.Now()) {
			t.Fatal("the tick failed")
		}
		h.Deliver()
		if entries, letters := h.History(stock.Engine), h.DeadLetters(stock.Engine); len(entries) != wantEntries || len(letters) != wantDeadLetters {
			t.Errorf("want %d entries and %d dead letters:\n%+v\n%+v", wantEntries, wantDeadLetters, entries, letters)
		}
	}
	tick(2, 0)
	tick(2, 0)
	execute(t, db, `INSERT INTO deliveries (delivery) VALUES ('{"id": 3, "article": "", "pieces": 0}'), ('{"id": 4, "article": "chair", "pieces": 1}')`)
	tick(4, 1) // the history has the failure, too
}

func execute(t *testing.T, db *sql.DB, statements string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// localSettings returns those of local.settings.json, so that the test covers the settings that users copy.
func localSettings(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("local.settings.json")
	if err != nil {
		t.Fatal(err)
	}
	var local struct{ Values map[string]string }
	if err := json.Unmarshal(text, &local); err != nil {
		t.Fatal(err)
	}
	return local.Values
}
