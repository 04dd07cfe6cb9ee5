package alerts

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/poller"
)

// pollerSetting is a poller that converts rows of a table of orders to events.
const pollerSetting = `{"orders":{"connection":{"setting":"ORDERS_DSN"},"schedule":"0 * * * * *","leaseTtl":"30s",
	"source":{"dialect":"sqlite","sourceId":"shop","table":"orders","cursor":"id","keys":["id"]},
	"deliver":{"outbox":{"eventType":"order","tenantId":"contoso"}}}}`

// slowSetting is a poller by time that reads a row per second for half of the time.
const slowSetting = `{"orders":{"connection":{"setting":"ORDERS_DSN"},"schedule":"0 * * * * *","rowsPerSecond":1,"budget":"30s","batch":{"first":10,"most":10},
	"source":{"dialect":"sqlite","sourceId":"shop","table":"orders","cursor":"at","keys":["id"],"bound":"settle"},
	"deliver":{"outbox":{"eventType":"order","tenantId":"contoso"}}}}`

// shop is the database of a poller.
type shop struct {
	w    *world
	file string
}

// newShop makes the database and lets the app poll it.
func newShop(w *world, setting, columns string) shop {
	w.t.Helper()
	s := shop{w, filepath.Join(w.t.TempDir(), "orders.db")}
	s.exec("CREATE TABLE orders (" + columns + ")")
	w.settings["ROUNDHOUSE_POLLERS"], w.settings["ORDERS_DSN"] = setting, s.file
	w.restart()
	w.schedule()
	return s
}

func (s shop) exec(statement string) {
	s.w.t.Helper()
	db, err := sql.Open("sqlite", s.file)
	if err == nil {
		defer db.Close()
		_, err = db.ExecContext(s.w.t.Context(), statement)
	}
	if err != nil {
		s.w.t.Fatal(err)
	}
}

// changed changes a number of orders together.
func (s shop) changed(orders int) {
	s.w.t.Helper()
	s.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO orders (at, state) SELECT '%s', 'new' FROM n`,
		orders, time.Now().UTC().Format(time.RFC3339)))
}

// move moves the database away, or back.
func (s shop) move(from, to string) {
	s.w.t.Helper()
	if err := os.Rename(s.file+from, s.file+to); err != nil {
		s.w.t.Fatal(err)
	}
}

const (
	plainOrders = "id INTEGER PRIMARY KEY AUTOINCREMENT, state TEXT"
	oneOrder    = "INSERT INTO orders (state) VALUES ('new')"
)

// pollerScenarios are those of pollers.
func pollerScenarios() []scenario {
	return []scenario{
		{alert: "RoundhousePollerStuck", run: func(w *world) {
			s := newShop(w, pollerSetting, plainOrders)
			s.exec(oneOrder)
			w.well(90 * time.Minute)
			s.move("", ".away")
			w.broken(100 * time.Minute)
			s.move(".away", "")
			w.mended(20 * time.Minute)
		}},
		{name: "a poller without a connection string", alert: "RoundhousePollerStuck", run: func(w *world) {
			s := newShop(w, pollerSetting, plainOrders)
			s.exec(oneOrder)
			w.well(90 * time.Minute)
			w.settings["ORDERS_DSN"] = ""
			w.replace("b")
			w.broken(100 * time.Minute)
			w.settings["ORDERS_DSN"] = s.file
			w.restart()
			w.mended(20 * time.Minute)
		}},
		{alert: "RoundhousePollerLag", run: func(w *world) {
			s := newShop(w, slowSetting, "id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, state TEXT")
			s.changed(1)
			w.well(20 * time.Minute)
			s.changed(1500) // it reads 30 a minute
			w.broken(45 * time.Minute)
			w.mended(30 * time.Minute)
		}},
		{alert: "RoundhousePollerQuarantine", also: []string{"RoundhouseDeadLettersPending"}, run: func(w *world) {
			s := newShop(w, pollerSetting, plainOrders)
			s.exec(oneOrder)
			w.well(20 * time.Minute)
			s.exec("INSERT INTO orders (state) VALUES (printf('%.*c', 2097152, 'x'))")
			w.broken(30 * time.Minute)
			w.resolve("poller-orders")
			w.mended(60 * time.Minute)
		}},
		{name: "a row that is given up by a new process", alert: "RoundhousePollerQuarantine", also: []string{"RoundhouseDeadLettersPending"}, run: func(w *world) {
			s := newShop(w, pollerSetting, plainOrders)
			s.exec(oneOrder)
			w.well(20 * time.Minute)
			w.timer("poller-orders-timer", true)
			s.exec("INSERT INTO orders (state) VALUES (printf('%.*c', 2097152, 'x'))")
			w.replace("b")
			w.spend(5 * time.Minute)
			w.timer("poller-orders-timer", false)
			w.broken(30 * time.Minute)
			w.resolve("poller-orders")
			w.mended(60 * time.Minute)
		}},
		{alert: "RoundhousePollerLeasesLost", run: func(w *world) {
			s := newShop(w, pollerSetting, plainOrders)
			s.exec(oneOrder)
			w.well(20 * time.Minute)
			n := 0
			var writes atomic.Int64
			w.storage.broken(func(c faults.Call) error { // storage grants the lease, and then fails for longer than the lease
				if c.Target == poller.DefaultContainer && c.Operation == "PutIf" && writes.Add(1) > 1 {
					return blobs.ErrThrottled
				}
				return nil
			})
			w.meanwhile = func() {
				writes.Store(0)
				if n++; n < 10 {
					s.exec(fmt.Sprintf("INSERT INTO orders (state) VALUES ('new %d')", n))
				}
			}
			w.broken(20 * time.Minute)
			w.storage.broken(nil)
			w.mended(70 * time.Minute)
		}},
	}
}
