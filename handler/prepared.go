package handler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/preparation"
	"github.com/vibedata/roundhouse/tables"
	"github.com/vibedata/roundhouse/tables/hostlock"
)

// The row that says what was made for which program, in the table of locks.
const (
	preparedPartition = "preparation"
	preparedRow       = "made"

	columnFingerprint = "Fingerprint"
	columnVersion     = "Version"
	columnMadeAt      = "MadeAtUtc"
)

// preparations are what creates what is missing in storage. The key comes before what writes: without it, nothing can be written.
// What was made for just this program is not made at each start: a row says so.
func (p *parts) preparations() *preparation.Preparation {
	create := []preparation.Step{p.makeVault, p.list.Prepare, p.audit.CreateTable, p.locks.CreateTable, p.platform.Registry.CreateTable,
		p.events.prepare, p.pollers.prepare, p.schedules.CreateTable}
	create = append(append(create, p.runtime.Preparations()...), p.pipeline.Preparations()...)
	for _, d := range p.definitions {
		for _, table := range d.Tables {
			create = append(create, func(ctx context.Context) error { return p.platform.Tables.CreateTable(ctx, table) })
		}
	}
	m := &made{parts: p, needs: p.platform.keeper.Plan(context.Background(), create...)}
	return preparation.NewOf(p.log, preparation.Work{Known: m.known, Mark: m.mark, Always: []preparation.Step{p.sealed.prepare, p.node.Start},
		Make: [][]preparation.Step{create, {p.sealed.prepare}, {p.register, p.registerOwn, p.announceTables, p.missInstances}}})
}

// register leaves in storage what the command line has to know when the app does not run.
func (p *parts) register(ctx context.Context) error {
	return errors.Join(p.history.Register(ctx, p.descriptions(), p.names), p.letters.Register(ctx, p.names))
}

// made is the note of what was made.
type made struct {
	parts *parts
	needs []string // what there has to be, but for the tables that the app's own document names
}

// known says whether everything was made for this program, with its engines, its instance and the tables that its own document names
// now.
func (m *made) known(ctx context.Context) (bool, error) {
	var names registry.TableNames
	var note tables.Entity
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		names, err = m.names(ctx)
		return err
	})
	group.Go(func() (err error) {
		if note, err = m.parts.placement.Get(ctx, hostlock.DefaultTable, madeKey()); errors.Is(err, tables.ErrNotFound) {
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return false, fmt.Errorf("find out what is prepared: %w", err)
	}
	return note.String(columnFingerprint) == m.fingerprint(names), nil
}

// mark notes that everything is made, unless the next start is to look again because of what was met.
func (m *made) mark(ctx context.Context) error {
	if m.parts.toBeTold.Swap(false) {
		return nil
	}
	names, err := m.names(ctx)
	if err != nil {
		return err
	}
	note := tables.Entity{Key: madeKey(), Properties: map[string]any{columnFingerprint: m.fingerprint(names), columnVersion: builtFrom(), columnMadeAt: time.Now().UTC()}}
	if err := m.parts.placement.Apply(ctx, hostlock.DefaultTable, tables.Upsert(note)); err != nil {
		return fmt.Errorf("note what is prepared: %w", err)
	}
	return nil
}

// names are the tables of history and dead letters, which the keeper does not know before.
func (m *made) names(ctx context.Context) (registry.TableNames, error) {
	names, err := m.parts.placement.Names(ctx)
	if err == nil {
		m.parts.platform.keeper.Need(names.History, names.DeadLetters)
	}
	return names, err
}

// fingerprint is the same for programs that make the same.
func (m *made) fingerprint(names registry.TableNames) string {
	p := m.parts
	text, err := json.Marshal([]any{m.needs, names, p.descriptions(), p.names, p.platform.InstanceID, p.platform.TenantID, accountName(p.settings.Storage)})
	if err != nil {
		return "" // no note has it: everything is made
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func madeKey() tables.Key { return tables.Key{Partition: preparedPartition, Row: preparedRow} }
