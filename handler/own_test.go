package handler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/handlertest"
	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/faults/faultstest"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// visits returns an app with engines that work on instances: "visit", one run at a time, and "glance", whose
// definition keeps rows for ten days.
func visits() handler.App {
	run := func(ctx *orchestrator.Context, r engine.Request[order]) (string, error) {
		if r.Input.Fail {
			return "", orchestrator.Permanent(errors.New("it cannot be"))
		}
		return orchestrator.NewActivity("look", func(context.Context, string) (string, error) { return "", nil }).Call(ctx, r.InstanceID).Await()
	}
	look := orchestrator.NewActivity("look", func(_ context.Context, id string) (string, error) { return "seen " + id, nil })
	glimpse := orchestrator.NewActivity("glimpse", func(_ context.Context, id string) (string, error) { return "seen " + id, nil })
	return handler.App{Engines: func(*handler.Platform) ([]engine.Definition, error) {
		return []engine.Definition{
			{Name: "visit", Queue: "visit-queue", Orchestrator: engine.Orchestrate("visit", run), Operations: []orchestrator.AnyActivity{look}, Singleton: engine.PerInstance},
			{Name: "glance", Queue: "glance-queue", Orchestrator: engine.Orchestrate("glance", run), Operations: []orchestrator.AnyActivity{glimpse}, Keep: 10 * 24 * time.Hour},
		}, nil
	}}
}

// configured creates an instance document with an engineTablesConfig, before the app creates one.
func configured(t *testing.T, store tables.Store, id string, c registry.EngineTablesConfig) {
	t.Helper()
	r := registry.New(store, "")
	err := r.CreateTable(t.Context())
	if err == nil {
		_, err = r.Create(t.Context(), registry.Instance{InstanceID: id, EngineTablesConfig: &c})
	}
	testenv.OK(t, err)
}

// rowsIn counts the rows of an engine in a table, 0 without the table.
func rowsIn(t *testing.T, store tables.Store, table, name string) int {
	t.Helper()
	page, err := store.Query(t.Context(), table, tables.Query{Partition: name})
	if errors.Is(err, tables.ErrNotFound) {
		return 0
	}
	testenv.OK(t, err)
	return len(page.Entities)
}

// An app creates its own document at its first start, with the current configuration, and never overwrites one.
func TestOwnDocumentIsMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings map[string]string
		want     string
	}{
		"publisher":           {nil, `{"engineTablesConfig":{"dlqTableName":"engineDlq","historyTableName":"engineHistory","retentionDays":90,"storageAccountName":"devstoreaccount1"},"instanceId":"publisher"`},
		"managed application": {map[string]string{"ROUNDHOUSE_INSTANCE_ID": "/apps/1", "ROUNDHOUSE_TENANT_ID": "t1"}, `{"engineTablesConfig":{"dlqTableName":"engineDlq","historyTableName":"engineHistory","retentionDays":90,"storageAccountName":"devstoreaccount1"},"instanceId":"/apps/1","instanceLock":{"lockDurationSeconds":3600,"lockJobId":"","lockUntilUtc":""},"registryVersion":1,"tenantId":"t1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := handlertest.New(t, visits(), c.settings)
			page, err := registry.New(h.Tables, "").List(t.Context(), 0, "")
			if err != nil || len(page.Instances) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			document, err := json.Marshal(page.Instances[0])
			if err != nil || !strings.Contains(string(document), c.want) {
				t.Errorf("%s, %v", document, err)
			}
			id := page.Instances[0].InstanceID
			answers(t, h, http.StatusOK, `"tablesInUse":{"dlqTableName":"engineDlq"`, http.MethodPatch, "/api/registry/"+strings.ReplaceAll(id, "/", "%2F"), `{"engineTablesConfig":{"retentionDays":7}}`)
			h.Restart(c.settings, func(*handler.Config) {})
			if i, err := registry.New(h.Tables, "").Get(t.Context(), id); err != nil || i.EngineTablesConfig.RetentionDays != 7 || i.Version != 2 {
				t.Errorf("after a restart: %+v, %v", i, err)
			}
		})
	}
}

// newVisits returns the app over stores, not started.
func newVisits(t *testing.T, store tables.Store) *handler.Handler {
	t.Helper()
	app, err := handler.New(visits(), handler.Config{Lookup: lookup(nil), Tables: store, Queues: queues.NewMemory(), Blobs: blobs.NewMemory()})
	testenv.OK(t, err)
	t.Cleanup(app.Close)
	return app
}

// lookup finds settings, or those of an app on a developer's machine.
func lookup(settings map[string]string) func(string) (string, bool) {
	development := map[string]string{"AzureWebJobsStorage": "UseDevelopmentStorage=true", "FUNCTIONS_CUSTOMHANDLER_PORT": "0", "AZURE_FUNCTIONS_ENVIRONMENT": "Development",
		"FUNCTIONS_CORETOOLS_ENVIRONMENT": "true", "AzureFunctionsJobHost__extensions__queues__maxDequeueCount": "100"}
	return func(name string) (string, bool) {
		if value, ok := settings[name]; ok {
			return value, true
		}
		value, ok := development[name]
		return value, ok
	}
}

// With any fault of any write to the registry, the app starts in the end, with one document and one record of its
// tables.
func TestOwnDocumentUnderFaults(t *testing.T) {
	t.Parallel()
	faultstest.UpTo(t, faults.Faults(), 3, func(t *testing.T, plan *faults.Plan) {
		store := tables.NewMemory()
		app := newVisits(t, faults.Tables(store, func(ctx context.Context, c faults.Call, next func(context.Context) error) error {
			if c.Target != registry.DefaultTable || c.Operation != "Apply" {
				return next(ctx)
			}
			return plan.Intercept(ctx, c, next)
		}))
		err := app.Start(t.Context())
		if plan.Crashed() { // another process takes over
			app = newVisits(t, store)
		}
		for tries := 0; err != nil && tries < 3; tries++ {
			err = app.Start(t.Context())
		}
		plan.Wait()
		page, listed := registry.New(store, "").List(t.Context(), 0, "")
		applied, noted := registry.New(store, "").Applied(t.Context())
		if err := errors.Join(err, listed, noted); err != nil || len(page.Instances) != 1 || page.Instances[0].Version != 1 ||
			applied.InstanceID != "publisher" || len(applied.Earlier) != 0 {
			t.Errorf("%+v, %+v, %v", page, applied, err)
		}
	})
}

// History and dead letters are in the tables of the app's own document, for all readers and writers.
func TestTablesOfTheDocument(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]string{"publisher": {}, "encrypted": {"ROUNDHOUSE_PAYLOAD_KEY": "payloads"}, "/apps/1": {"ROUNDHOUSE_INSTANCE_ID": "/apps/1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := name
			if own == "encrypted" {
				own = "publisher"
			}
			store := tables.NewMemory()
			configured(t, store, own, registry.EngineTablesConfig{StorageAccountName: "devstoreaccount1", DlqTableName: "letters", HistoryTableName: "deeds"})
			h := handlertest.NewWith(t, visits(), settings, func(c *handler.Config) { c.Tables = store })
			h.Send("visit-queue", `{"correlationId":"well","instanceId":"i1"}`)
			h.Send("visit-queue", `{"correlationId":"ill","instanceId":"i2","input":{"fail":true}}`)
			h.Deliver()
			for table, want := range map[string]bool{"deeds": true, "letters": true, engine.DefaultHistoryTable: false, engine.DefaultDeadLetterTable: false} {
				if n := rowsIn(t, store, table, "visit"); (n > 0) != want {
					t.Errorf("%d rows in %s", n, table)
				}
			}
			for path, want := range map[string]string{"/api/history?engine=visit": `"correlationId":"well"`, "/api/dlq?engine=visit": `"correlationId":"ill"`, "/api/dlq/counts": `"engine":"visit","pending":1`,
				"/api/timeline/ill": `"deadLetter"`, "/api/health/full": `"status":`} {
				answers(t, h, http.StatusOK, want, http.MethodGet, path, "")
			}
			if len(h.History("visit")) == 0 || len(h.DeadLetters("visit")) != 1 {
				t.Errorf("%+v, %+v", h.History("visit"), h.DeadLetters("visit"))
			}
			applied, err := registry.New(store, "").Applied(t.Context())
			if err != nil || applied.InstanceID != own || applied.Tables != (registry.TableNames{DeadLetters: "letters", History: "deeds"}) {
				t.Errorf("%+v, %v", applied, err)
			}
		})
	}
}

// A change of names takes effect at the next start, and the previous tables are reported while they hold rows.
func TestTablesAreChanged(t *testing.T) {
	t.Parallel()
	h := handlertest.New(t, visits(), nil)
	h.Send("visit-queue", `{"correlationId":"before","instanceId":"i1"}`)
	h.Deliver()
	answers(t, h, http.StatusOK, `"historyTableName":"engineHistory"}`, http.MethodPatch, "/api/registry/publisher", `{"engineTablesConfig":{"dlqTableName":"letters","historyTableName":"deeds"}}`)
	h.Send("visit-queue", `{"correlationId":"between","instanceId":"i2"}`)
	h.Deliver()
	var log bytes.Buffer
	for range 2 { // it is reported at each start
		log.Reset()
		h.Restart(nil, func(c *handler.Config) { c.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
		if text := log.String(); strings.Count(text, "still holds history or dead letters") != 1 || !strings.Contains(text, `"table":"engineHistory"`) {
			t.Errorf("the log: %s", text)
		}
	}
	h.Send("visit-queue", `{"correlationId":"after","instanceId":"i3"}`)
	h.Deliver()
	var ids []string
	for _, e := range h.History("visit") {
		ids = append(ids, e.CorrelationID)
	}
	testenv.Equal(t, "", []string{"after"}, ids)
	answers(t, h, http.StatusOK, "", http.MethodPatch, "/api/registry/publisher", `{"engineTablesConfig":{"dlqTableName":null,"historyTableName":null}}`)
	h.Restart(nil, func(*handler.Config) {})
	if n := len(h.History("visit")); n != 2 { // before and between
		t.Errorf("%d entries after the names are what they were", n)
	}
}

// An invalid document keeps the app from becoming ready, with the reason.
func TestTablesThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config registry.EngineTablesConfig
		says   string
	}{
		"another account":        {registry.EngineTablesConfig{StorageAccountName: "another"}, "storageAccountName is another, and the app works with devstoreaccount1"},
		"the table of the locks": {registry.EngineTablesConfig{HistoryTableName: "HostLocks"}, "is used for other things"},
		"no name":                {registry.EngineTablesConfig{DlqTableName: "a-b"}, "is not the name of a table"},
		"no days":                {registry.EngineTablesConfig{Retention: map[string]int{"visit": -1}}, "use 1 to 3650 days"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := handlertest.New(t, visits(), nil)
			r := registry.New(host.Tables, "")
			testenv.Must(r.Update(t.Context(), "publisher", "", func(i *registry.Instance) error { i.EngineTablesConfig = &c.config; return nil }))(t)
			app := newVisits(t, host.Tables)
			if err := app.Start(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "publisher") {
				t.Errorf("%v", err)
			}
		})
	}
}

// The document's retention applies: that of the engine, or else that for all, which does not override an engine's
// definition; it is read every night.
func TestRetentionOfTheDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		kept   map[string]int // retention in days
	}{
		"nothing":    {`{}`, map[string]int{"visit": 90, "glance": 10}},
		"all":        {`{"retentionDays":7}`, map[string]int{"visit": 7, "glance": 10}},
		"one":        {`{"retentionDays":30,"retention":{"glance":3}}`, map[string]int{"visit": 30, "glance": 3}},
		"the other":  {`{"retentionDays":null,"retention":{"visit":400}}`, map[string]int{"visit": 400, "glance": 10}},
		"of nothing": {`{"retention":{"nobody":1}}`, map[string]int{"visit": 90, "glance": 10}},
	} {
		testenv.Bubble(t, name, func(t *testing.T) {
			h := handlertest.New(t, visits(), nil)
			ages := []int{2, 4, 8, 12, 29, 31, 89, 91, 399, 401}
			begun := time.Now()
			for _, age := range ages {
				at := begun.Add(-time.Duration(age) * 24 * time.Hour)
				for engineName := range c.kept {
					id := fmt.Sprint("run-", age)
					testenv.OK(t, engine.NewHistory(h.Tables, "").Record(t.Context(), engine.Entry{Engine: engineName, Operation: "look",
						Status: engine.StatusSucceeded, CreatedAtUtc: at, CorrelationID: id}))
					letters := engine.NewDeadLetters(h.Tables, "")
					for _, status := range []engine.DeadLetterStatus{engine.StatusPending, engine.StatusResolved, engine.StatusExpired} {
						message := string(status) + id
						testenv.Must(letters.Add(t.Context(), engine.DeadLetter{Engine: engineName, MessageID: message, CorrelationID: id,
							OriginalQueue: "visit-queue", InsertedAtUtc: at, LastFailureAtUtc: at}))(t)
						if status != engine.StatusPending {
							testenv.Must(letters.Decide(t.Context(), engineName, message+at.UTC().Format("-20060102T150405.000000Z"),
								engine.Decision{Status: status, By: "ann", At: at}))(t)
						}
					}
				}
			}
			answers(t, h, http.StatusOK, "", http.MethodPatch, "/api/registry/publisher", `{"engineTablesConfig":`+c.config+`}`)
			if !h.Tick("retention-timer", time.Now()) {
				t.Fatal("the retention failed")
			}
			for engineName, days := range c.kept {
				want := 0
				for _, age := range ages {
					if age < days {
						want++
					}
				}
				testenv.Equal(t, fmt.Sprintf("%s: entries", engineName), want, len(h.History(engineName)))
				testenv.Equal(t, fmt.Sprintf("%s: dead letters: each that is resolved and expired, and those that are pending", engineName), 2*want+len(ages), len(h.DeadLetters(engineName)))
			}
		})
	}
}

// While the document is invalid, the retention is unknown, so nothing is deleted.
func TestNothingIsDeletedByADamagedDocument(t *testing.T) {
	t.Parallel()
	h := handlertest.New(t, visits(), nil)
	testenv.OK(t, engine.NewHistory(h.Tables, "").Record(t.Context(), engine.Entry{Engine: "visit", Operation: "look", Status: engine.StatusSucceeded, CreatedAtUtc: time.Now().AddDate(-1, 0, 0), CorrelationID: "old"}))
	_, err := registry.New(h.Tables, "").Update(t.Context(), "publisher", "", func(i *registry.Instance) error { i.EngineTablesConfig.RetentionDays = -7; return nil })
	testenv.OK(t, err)
	if h.Tick("retention-timer", time.Now()) || len(h.History("visit")) != 1 {
		t.Error("it was deleted")
	}
}

// Messages for a drained instance wait for any time, use up no attempt, and run when the instance is resumed.
func TestMessagesOfADrainedInstanceWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlertest.New(t, visits(), nil)
		do := func(method, path, body string) string {
			t.Helper()
			status, answer := h.Do(method, path, body)
			if status >= http.StatusBadRequest {
				t.Fatalf("%s %s: %d %s", method, path, status, answer)
			}
			return answer
		}
		do(http.MethodPost, "/api/registry", `{"instanceId":"i1"}`)
		do(http.MethodPost, "/api/registry/i1/drain", `{"forSeconds":86400,"reason":"moving"}`)
		h.Send("visit-queue", `{"correlationId":"waits","instanceId":"i1"}`)
		h.Send("visit-queue", `{"correlationId":"goes","instanceId":"i2"}`)
		for range 200 { // more than the attempts of a message
			h.Deliver()
			time.Sleep(time.Minute)
		}
		if entries := h.History("visit"); len(entries) != 1 || entries[0].CorrelationID != "goes" || len(h.DeadLetters("visit")) != 0 {
			t.Fatalf("while it is drained: %+v, %+v", entries, h.DeadLetters("visit"))
		}
		do(http.MethodPost, "/api/registry/i1/resume", "")
		for range 6 {
			h.Deliver()
			time.Sleep(time.Minute)
		}
		entries := h.History("visit")
		if len(entries) != 2 || entries[0].CorrelationID != "waits" || entries[0].Status != engine.StatusSucceeded || len(h.DeadLetters("visit")) != 0 {
			t.Errorf("after it was resumed: %+v, %+v", entries, h.DeadLetters("visit"))
		}
	})
}

// An app whose engines work on instances reports that none exists, in its health and in its log, until one does.
func TestNoInstanceIsRegistered(t *testing.T) {
	t.Parallel()
	app := visits()
	made := app.Engines
	app.Engines = func(p *handler.Platform) ([]engine.Definition, error) {
		p.InstanceID, p.WorksOnInstances = "", true
		return made(p)
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := handlertest.NewWith(t, app, nil, func(c *handler.Config) { c.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
		ask := func() string {
			_, answer := h.Do(http.MethodGet, "/api/health/full", "")
			return answer
		}
		if answer := ask(); !strings.Contains(answer, "No instance is registered") || !strings.Contains(log.String(), "no instance is registered") {
			t.Errorf("%s; %s", answer, log.String())
		}
		answers(t, h, http.StatusCreated, "", http.MethodPost, "/api/registry", `{"instanceId":"i1"}`)
		time.Sleep(time.Minute) // the maximum age of a report
		if answer := ask(); strings.Contains(answer, "No instance is registered") || !strings.Contains(answer, `"registry:instances"`) {
			t.Error(answer)
		}
		if page, err := registry.New(h.Tables, "").List(t.Context(), 0, ""); err != nil || len(page.Instances) != 1 {
			t.Errorf("an app without an instance of its own has %+v, %v", page, err)
		}
	})
}
