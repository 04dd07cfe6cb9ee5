package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/drain"
	"github.com/vibedata/roundhouse/tables"
)

// many is the length from which a queue counts as unprocessed.
const many = 1000

// The version column of orchestrations, and the newest version that this program knows: a test compares them with a
// run.
const (
	orchestrationTable = "orchestrations"
	knownSchema        = 1
	statusRow          = "status"
	schemaColumn       = "SnapshotSchemaVersion"
	// schemaSample is the number of orchestrations whose version is checked.
	schemaSample = 100
)

// examineStorage checks the storage account.
func (a *app) examineStorage(ctx context.Context, p *patient) {
	s, err := a.stores()
	if !p.tried("storage settings", err, "", "set AzureWebJobsStorage as the app has it, or give --storage") {
		return
	}
	p.findings[len(p.findings)-1].Found = s.Account.String()
	if a.flags.url != "" && a.flags.storage == "" {
		p.add("same app", watch, "give --storage with the account of that app, or --storage settings if it is this one", "--url names an app, the storage account is that of the settings here: it may be another app's")
	}
	scratch := "doctor" + strings.ToLower(rand.Text()[:16])
	err = a.probe(ctx, func(ctx context.Context) error { return probeTable(ctx, s, scratch) })
	ok := p.stored("storage tables", err)
	began := a.Now()
	var inserted time.Time
	err = a.probe(ctx, func(ctx context.Context) (err error) {
		inserted, err = probeQueue(ctx, s, scratch)
		return err
	})
	ok = p.stored("storage queues", err) && ok
	if !inserted.IsZero() {
		p.clock("storage clock", inserted, began, a.Now())
	}
	err = a.probe(ctx, func(ctx context.Context) error { return probeBlob(ctx, s, scratch) })
	ok = p.stored("storage blobs", err) && ok
	if !ok {
		return
	}
	a.examineQueues(ctx, s, p)
	a.examineDrain(ctx, s, p)
	a.examineTables(ctx, s, p)
	err = a.probe(ctx, func(ctx context.Context) error { return versions(ctx, s.Tables) })
	p.tried("schema versions", err, "this program knows all that were looked at", "use roundhouse of the app's version")
	if a.Pollers != nil {
		a.examinePollers(ctx, s, p)
	}
}

// stored adds the result of a write to storage. An operator who only deploys the app needs no access to its storage.
func (p *patient) stored(check string, err error) bool {
	if p.azure != nil && errors.Is(err, tables.ErrDenied) {
		p.add(check, watch, "ask for the roles of docs/security.md for operators, and for a way through the firewall", "not looked at: you may not")
		return false
	}
	return p.tried(check, err, "written, read and deleted", storageFix(err))
}

// storageFix returns the remedy for an error of the storage account.
func storageFix(err error) string {
	switch {
	case errors.Is(err, tables.ErrDenied):
		return "give the identity the roles of docs/settings.md, or check the account's key and firewall"
	case errors.Is(err, tables.ErrOutcomeUnknown):
		return "see whether the account is there: start the emulator, or correct AzureWebJobsStorage or --storage, ports included"
	case errors.Is(err, tables.ErrThrottled):
		return "try again later"
	default:
		return "check AzureWebJobsStorage or --storage: is each endpoint that of its service?"
	}
}

// examinePollers checks that the states of pollers are readable, and their conditions.
func (a *app) examinePollers(ctx context.Context, s Storage, p *patient) {
	var rows []pollerRow
	err := a.probe(ctx, func(ctx context.Context) error {
		states, err := a.Pollers(s)
		if err == nil {
			rows, err = pollerRows(ctx, states)
		}
		return err
	})
	if !p.tried("pollers", err, about(len(rows), false, "poller"), "see docs/pollers.md") {
		return
	}
	for _, row := range rows {
		switch row.Condition {
		case pollerDamaged, pollerStopped, pollerFailing:
			p.add("poller "+row.Poller, watch, "see docs/pollers.md: roundhouse poller show "+row.Poller, "%s: %s%s", row.Condition, row.Error, row.Problem)
		case pollerNew:
			p.add("poller "+row.Poller, watch, "is the app running, and does it have the function poller-"+row.Poller+"-timer?", "it has never run")
		}
	}
}

// examineDrain checks whether the app is drained.
func (a *app) examineDrain(ctx context.Context, s Storage, p *patient) {
	var flag drain.Flag
	err := a.probe(ctx, func(ctx context.Context) (err error) { flag, err = drain.Store{Tables: s.Tables}.Flag(ctx); return err })
	switch {
	case err != nil:
		p.tried("drain", err, "", "try again")
	case flag.Set(a.Now()):
		p.add("drain", watch, "roundhouse drain --end, when the update is done", "the app does no work until %s: %s drains it", flag.Until.Format(time.RFC3339), flag.By)
	default:
		p.add("drain", fine, "", "the app works")
	}
}

// examineTables reports the tables of history and dead letters, and previous ones that still hold rows.
func (a *app) examineTables(ctx context.Context, s Storage, p *patient) {
	var applied registry.Applied
	var left []string
	err := a.probe(ctx, func(ctx context.Context) (err error) {
		if applied, err = registry.New(s.Tables, "").Applied(ctx); err != nil || len(applied.Earlier) == 0 {
			return err
		}
		_, names, err := registered(ctx, s)
		if err == nil {
			left, err = engine.LeftTables(ctx, s.Tables, applied, names)
		}
		return err
	})
	found := "the app has not started with this account"
	if applied.Tables.History != "" {
		found = "history is in " + applied.Tables.History + ", dead letters in " + applied.Tables.DeadLetters
	}
	if !p.tried("engine tables", err, found, "try again") {
		return
	}
	for _, table := range left {
		p.add("engine table "+table, watch, "see docs/registry.md: name it in engineTablesConfig again to see to its rows, or delete it",
			"the app worked with it before, and it holds history or dead letters, which are neither shown nor deleted")
	}
}

func (a *app) probe(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	return do(ctx)
}

// undone returns a context for clean-up, independent of the end of ctx.
func undone(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

func probeTable(ctx context.Context, s Storage, name string) (err error) {
	if err := s.Tables.CreateTable(ctx, name); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := undone(ctx)
		defer cancel()
		err = errors.Join(err, s.Tables.DeleteTable(ctx, name))
	}()
	row := tables.Entity{Key: tables.Key{Partition: "p", Row: "r"}, Properties: map[string]any{"V": "v"}}
	if err := s.Tables.Apply(ctx, name, tables.Insert(row)); err != nil {
		return err
	}
	_, err = s.Tables.Get(ctx, name, row.Key)
	return err
}

func probeQueue(ctx context.Context, s Storage, name string) (inserted time.Time, err error) {
	if err := s.Queues.CreateQueue(ctx, name); err != nil {
		return inserted, err
	}
	defer func() {
		ctx, cancel := undone(ctx)
		defer cancel()
		err = errors.Join(err, s.Queues.DeleteQueue(ctx, name))
	}()
	if _, err := s.Queues.Send(ctx, name, []byte("probe"), 0); err != nil {
		return inserted, err
	}
	got, err := s.Queues.Receive(ctx, name, 1, time.Minute)
	if err == nil && len(got) > 0 {
		inserted = got[0].InsertedAt
	}
	return inserted, err
}

func probeBlob(ctx context.Context, s Storage, name string) (err error) {
	if err := s.Blobs.CreateContainer(ctx, name); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := undone(ctx)
		defer cancel()
		err = errors.Join(err, s.Blobs.DeleteContainer(ctx, name))
	}()
	if err := s.Blobs.Put(ctx, name, "probe", []byte("probe")); err != nil {
		return err
	}
	got, err := s.Blobs.Get(ctx, name, "probe")
	if err == nil && !bytes.Equal(got, []byte("probe")) {
		err = errors.New("what was read is not what was written")
	}
	return err
}

// examineQueues checks the lengths of the queues. Those of the other profile do not exist.
func (a *app) examineQueues(ctx context.Context, s Storage, p *patient) {
	var engines []engine.Description
	err := a.probe(ctx, func(ctx context.Context) (err error) { engines, _, err = registered(ctx, s); return err })
	if !p.tried("engines", err, fmt.Sprintf("the app has left %d in storage", len(engines)), "the app leaves them there when it starts: has it run with this account?") {
		return
	}
	found := 0
	for _, name := range queueNames(engines) {
		n, exists := a.length(ctx, s, p, name)
		if exists {
			found++
		}
		if n >= many {
			p.add(name, watch, "is the app running, and fast enough?", "%d messages wait", n)
		}
		if n, _ := a.length(ctx, s, p, name+engine.PoisonSuffix); n > 0 {
			p.add(name+engine.PoisonSuffix, watch, "they become dead letters within five minutes while the app runs: see roundhouse dlq list", "%s", about(n, false, "message"))
		}
	}
	if found == 0 {
		p.add("queues", watch, "the app makes them when it starts: has it run with this account?", "there are none")
		return
	}
	p.add("queues", fine, "", "%d looked at, with their poison queues", found)
}

func (a *app) length(ctx context.Context, s Storage, p *patient, queue string) (n int, exists bool) {
	err := a.probe(ctx, func(ctx context.Context) (err error) { n, err = s.Queues.Length(ctx, queue); return err })
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return 0, false
	case err != nil:
		p.tried(queue, err, "", "try again")
		return 0, true
	}
	return n, true
}

// versions searches for rows of a newer program.
func versions(ctx context.Context, store tables.Store) error {
	page, err := store.Scan(ctx, orchestrationTable, tables.Scan{Row: statusRow, Select: []string{schemaColumn}, Limit: schemaSample})
	if errors.Is(err, tables.ErrNotFound) {
		return nil // nothing has run yet
	}
	if err != nil {
		return err
	}
	for _, row := range page.Entities {
		if v := row.Int(schemaColumn); v > knownSchema {
			return fmt.Errorf("orchestration %s has version %d, this program knows up to %d", row.Partition, v, knownSchema)
		}
	}
	return nil
}
