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

// maxUntold bounds the rows that a transaction writes besides its own: a hundred are what the store takes.
const maxUntold = 50

// announce gives what consumers are told of a version. Of a slot's, that is fixed the first time, in the slot's row, and
// the same from then on; of another, it follows from when it was made, and of one that the secret store does not list,
// there is nothing to tell but its name.
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
		// Somebody else was faster, or it is not known who was: the next look tells.
		if !errors.Is(err, tables.ErrPrecondition) && !errors.Is(err, tables.ErrOutcomeUnknown) {
			return out, err
		}
	}
	return out, err
}

// untold are the rows besides the one at hand of which nobody was told. They are written again as they are: somebody who tells of
// one of them at the same time fails then, or has it fail here, and looks again. So what is told comes one after the other.
func untold(rows []slotRow, at int) []slotRow {
	var others []slotRow
	for i, r := range rows {
		if i != at && !r.announced() {
			others = append(others, r)
		}
	}
	// Those that were left behind long ago have nobody who tells of them.
	slices.SortFunc(others, func(a, b slotRow) int { return b.created.Compare(a.created) })
	return others[:min(len(others), maxUntold)]
}

// times are those of a version that consumers are told of now, in whole seconds. It becomes active after all that they were
// told of before, whatever the clock and the settings were then.
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

// foreign is what is told of a version that is no slot's.
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

// unusable is why consumers cannot be told of a slot's version.
func unusable(listed bool) error {
	if !listed {
		return fmt.Errorf("%w: the secret store does not list it; rotate under another slot", ErrVersionMissing)
	}
	return fmt.Errorf("%w before anybody was told of it; rotate the slot again, or another", ErrVersionDisabled)
}

// announcement adds what is fixed in a slot's row.
func (r slotRow) announcement(out NotifyOutput) NotifyOutput {
	out.ActiveAtUtc = r.activeAt
	if r.previous != "" {
		out.PreviousVersion, out.GraceEndsAtUtc = r.previous, r.graceEndsAt
	}
	return out
}
