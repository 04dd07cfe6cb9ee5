package consumers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/tables"
)

const (
	// waitingPartition has the latest check of each waiting credential. No escaped engine begins with the tilde.
	waitingPartition = "~waiting"
	// noteLife is the time for which a check counts: longer than the longest pause between checks.
	noteLife = 2 * longestPause
)

const (
	propEngine  = "Engine"
	propEvent   = "EventId"
	propMissing = "Missing"
	propSeen    = "SeenAtUtc"
)

// Note is a credential that waits for consumers, by its latest check.
type Note struct {
	Engine, Target, Version, EventID string
	// Missing are the consumers without the version.
	Missing   []string
	SeenAtUtc time.Time
}

// note records that a credential waits.
func (c *Consumers) note(ctx context.Context, target string, w Waiting) error {
	missing, err := json.Marshal(w.Missing)
	if err != nil {
		return fmt.Errorf("note that %s %.200q waits: %w", c.config.Engine, target, err)
	}
	row := tables.Entity{Key: c.noteKey(target), Properties: map[string]any{propEngine: c.config.Engine, propTarget: target, propVersion: w.Version,
		propEvent: w.EventID, propMissing: string(missing), propSeen: c.config.Now().UTC()}}
	if err := c.config.Tables.Apply(ctx, Table, tables.Upsert(row)); err != nil {
		return fmt.Errorf("note that %s %.200q waits: %w", c.config.Engine, target, err)
	}
	return nil
}

// Settled removes the record of a waiting credential. The errors are those of the store.
func (c *Consumers) Settled(ctx context.Context, target string) error {
	err := c.config.Tables.Apply(ctx, Table, tables.Delete(c.noteKey(target), ""))
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		return fmt.Errorf("forget that %s %.200q waits: %w", c.config.Engine, target, err)
	}
	return nil
}

func (c *Consumers) noteKey(target string) tables.Key {
	return tables.Key{Partition: waitingPartition, Row: c.partition(target)}
}

// Waits returns the note of a credential; false when it does not wait.
func (c *Consumers) Waits(ctx context.Context, target string) (Note, bool, error) {
	e, err := c.config.Tables.Get(ctx, Table, c.noteKey(target))
	if errors.Is(err, tables.ErrNotFound) {
		return Note{}, false, nil
	}
	if err != nil {
		return Note{}, false, fmt.Errorf("read whether %s %.200q waits: %w", c.config.Engine, target, err)
	}
	n := noteOf(e)
	return n, n.counts(c.config.Now()), nil
}

// CountWaiting counts the waiting credentials by engine, from the checks of the last two hours: a run that ended
// otherwise does not check again. The errors are those of the store.
func CountWaiting(ctx context.Context, store tables.Store, now time.Time) (map[string]int, error) {
	count := map[string]int{}
	for e, err := range tables.All(ctx, store, Table, tables.Query{Partition: waitingPartition}) {
		if err != nil {
			return nil, fmt.Errorf("read which credentials wait: %w", err)
		}
		if n := noteOf(e); n.counts(now) {
			count[n.Engine]++
		}
	}
	return count, nil
}

func (n Note) counts(now time.Time) bool { return n.SeenAtUtc.After(now.Add(-noteLife)) }

func noteOf(e tables.Entity) Note {
	n := Note{Engine: e.String(propEngine), Target: e.String(propTarget), Version: e.String(propVersion), EventID: e.String(propEvent), SeenAtUtc: e.Time(propSeen).UTC()}
	if json.Unmarshal([]byte(e.String(propMissing)), &n.Missing) != nil {
		n.Missing = nil // a row that was edited by hand
	}
	n.Missing = slices.Clip(n.Missing)
	return n
}
