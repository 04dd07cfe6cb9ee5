package hmac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// maxUntold bounds the additional rows of a transaction: the store accepts a hundred.
const maxUntold = 50

// announce returns the announcement of a version. For a slot's version, the first call stores it in the slot's row,
// and later calls return the same. For another version, it follows from its creation time, and for a version that the
// secret store does not list, it has only the name.
func (s *Steps) announce(ctx context.Context, in NotifyInput) (NotifyOutput, error) {
	out := NotifyOutput{InstanceID: in.InstanceID, SecretName: in.SecretName, Version: in.Version}
	var err error
	for range maxTries {
		var rows []slotRow
		if rows, err = s.slots(ctx, in.InstanceID); err != nil {
			return out, err
		}
		at := slices.IndexFunc(rows, func(r slotRow) bool { return r.version == in.Version && r.secretName == in.SecretName })
		if at >= 0 && rows[at].announced() {
			return rows[at].announcement(out), nil
		}
		versions, listErr := s.vault.Versions(ctx, in.SecretName)
		if listErr != nil {
			return out, listErr
		}
		if at < 0 {
			return s.foreign(out, versions), nil
		}
		if listed, enabled := lookUp(versions, in.Version); !listed || !enabled {
			return out, unusable(listed)
		}
		row := rows[at]
		row.previous = predecessor(versions, slotsOf(rows))
		row.activeAt, row.graceEndsAt = s.times(rows)
		if err = s.replaceSlots(ctx, append(untold(rows, at), row)...); err == nil {
			return row.announcement(out), nil
		}
		// Another process was faster, or the outcome is unknown: the next read decides.
		if !errors.Is(err, tables.ErrPrecondition) && !errors.Is(err, tables.ErrOutcomeUnknown) {
			return out, err
		}
	}
	return out, err
}

// untold returns the other rows without an announcement. They are rewritten unchanged, so that a concurrent
// announcement of one of them conflicts, and one of the two reads again. So announcements are made one after the
// other.
func untold(rows []slotRow, at int) []slotRow {
	var others []slotRow
	for i, r := range rows {
		if i != at && !r.announced() {
			others = append(others, r)
		}
	}
	// Rows left behind long ago have no run that announces them.
	slices.SortFunc(others, func(a, b slotRow) int { return b.created.Compare(a.created) })
	return others[:min(len(others), maxUntold)]
}

// times returns the announced times of a version, in whole seconds. It becomes active after all previously announced
// versions, whatever clock and settings they used.
func (s *Steps) times(rows []slotRow) (activeAt, graceEndsAt time.Time) {
	activeAt = s.now().UTC().Truncate(time.Second)
	graceEndsAt = activeAt
	if s.timing.Grace > 0 {
		activeAt, graceEndsAt = activeAt.Add(s.timing.Propagation), graceEndsAt.Add(s.timing.Grace)
	}
	for _, r := range rows {
		if r.announced() && !activeAt.After(r.activeAt) {
			behind := r.activeAt.Sub(activeAt) + time.Second
			activeAt, graceEndsAt = activeAt.Add(behind), graceEndsAt.Add(behind)
		}
	}
	return activeAt, graceEndsAt
}

// foreign returns the announcement of a version that belongs to no slot.
func (s *Steps) foreign(out NotifyOutput, versions []secrets.Version) NotifyOutput {
	at := slices.IndexFunc(versions, func(v secrets.Version) bool { return v.Version == out.Version })
	if at < 0 {
		return out
	}
	out.ActiveAtUtc = versions[at].Created.UTC()
	if s.timing.Grace > 0 {
		out.ActiveAtUtc = out.ActiveAtUtc.Add(s.timing.Propagation)
	}
	return out
}

// unusable returns the reason why a slot's version cannot be announced.
func unusable(listed bool) error {
	if !listed {
		return fmt.Errorf("%w: the secret store does not list it; rotate under another slot", ErrVersionMissing)
	}
	return fmt.Errorf("%w before anybody was told of it; rotate the slot again, or another", ErrVersionDisabled)
}

// announcement adds the fixed fields of a slot's row.
func (r slotRow) announcement(out NotifyOutput) NotifyOutput {
	out.ActiveAtUtc = r.activeAt
	if r.previous != "" {
		out.PreviousVersion, out.GraceEndsAtUtc = r.previous, r.graceEndsAt
	}
	return out
}
