package hmac

import (
	"context"
	"errors"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// forgetAtOnce bounds the rows that one Retire removes: a transaction has 100 operations.
const forgetAtOnce = 100

// old returns the obsolete rows of slots: their version is disabled or purged, and was followed by that of own,
// longer ago than SlotKeep. A version that is enabled needs its row to be retired by.
func old(rows []slotRow, own slotRow, versions []secrets.Version, now time.Time) []slotRow {
	var gone []slotRow
	for _, r := range rows {
		since := r.created
		if r.announced() {
			since = r.activeAt
		}
		_, enabled := lookUp(versions, r.version)
		if r.slot != own.slot && !enabled && since.Before(own.activeAt) && since.Before(now.Add(-SlotKeep)) && len(gone) < forgetAtOnce {
			gone = append(gone, r)
		}
	}
	return gone
}

// forget removes rows of an instance, unless one has changed: the next Retire finds the rest.
func (s *Steps) forget(ctx context.Context, rows []slotRow) error {
	if len(rows) == 0 {
		return nil
	}
	ops := make([]tables.Op, len(rows))
	for i, r := range rows {
		ops[i] = tables.Delete(r.key(), r.etag)
	}
	err := s.tables.Apply(ctx, SlotsTable, ops...)
	if errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrPrecondition) {
		return nil
	}
	return err
}
