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

// The row in the table of locks that records the prepared program.
const (
	preparedPartition = "preparation"
	preparedRow       = "made"

	columnFingerprint = "Fingerprint"
	columnVersion     = "Version"
	columnMadeAt      = "MadeAtUtc"
)

// preparations returns the steps that create missing storage. The key comes before writing steps: without it, nothing
// can be written. Storage that was created for this very program is not checked at each start: a row records it.
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

// register records data in storage that the command line needs when the app does not run.
func (p *parts) register(ctx context.Context) error {
	return errors.Join(p.history.Register(ctx, p.descriptions(), p.names), p.letters.Register(ctx, p.names))
}

// made is the record of created storage.
type made struct {
	parts *parts
	needs []string // the required storage, except for the tables of the app's own document
}

// known reports whether everything was created for this program, with its engines, its instance and the current
// tables of its own document.
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

// mark records that everything is created, unless a problem requires that the next start checks again.
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

// names returns the tables of history and dead letters, which the keeper does not know before.
func (m *made) names(ctx context.Context) (registry.TableNames, error) {
	names, err := m.parts.placement.Names(ctx)
	if err == nil {
		m.parts.platform.keeper.Need(names.History, names.DeadLetters)
	}
	return names, err
}

// fingerprint returns the same text for programs with the same storage.
func (m *made) fingerprint(names registry.TableNames) string {
	p := m.parts
	text, err := json.Marshal([]any{m.needs, names, p.descriptions(), p.names, p.platform.InstanceID, p.platform.TenantID, accountName(p.settings.Storage)})
	if err != nil {
		return "" // no record has it: everything is created
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func madeKey() tables.Key { return tables.Key{Partition: preparedPartition, Row: preparedRow} }
