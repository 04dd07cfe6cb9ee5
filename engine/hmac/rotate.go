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

// Tags of a version in the secret store.
const (
	TagSlot = "rotationSlot"
	TagJob  = "rotationJobId"
)

// maxTries bounds the rounds of one Rotate: each follows an inconclusive answer.
const maxTries = 5

// RotateInput names the key to make.
type RotateInput struct {
	// InstanceID is the instance of the key. Required.
	InstanceID string `json:"instanceId"`
	// TenantID is the tenant of the instance, for the record.
	TenantID string `json:"tenantId,omitempty"`
	// Slot names the occurrence of the schedule, for example 2026-11-21T00; one slot is one rotation. Required.
	Slot string `json:"slot"`
	// JobID is the calling run, for operators who read the tags. Required.
	JobID string `json:"jobId"`
	// Again counts the previous attempts: each has to check again, because the version may have been disabled since.
	// Otherwise the answer is the same.
	Again int `json:"again,omitempty"`
}

// RotateOutput names the slot's key; it holds nothing secret.
type RotateOutput struct {
	SecretName string `json:"secretName"`
	Version    string `json:"version"`
	Slot       string `json:"slot"`
	// CreatedAtUtc is when the secret store made the version, in whole seconds.
	CreatedAtUtc time.Time `json:"createdAtUtc"`
}

// rotation is one run of Rotate.
type rotation struct {
	*Steps
	in   RotateInput
	name string // of the secret
	slot string // as tag and row key
	job  string // as tag
	// added is set once this run asked for a version: earlier reads are out of date then.
	added bool
}

// Rotate makes sure that the slot has one key, and returns its version. Repeating it, at any time and from anywhere,
// returns the same version while it is enabled. A slot whose version was disabled gets a new one, unless the version
// of another slot has replaced it. Errors are ErrInput, ErrVersionMissing, which needs an operator, and those of
// secrets and tables; it is safe to repeat after all.
func (s *Steps) Rotate(ctx context.Context, in RotateInput) (RotateOutput, error) {
	if err := in.validate(); err != nil {
		return RotateOutput{}, fmt.Errorf("rotate: %w", err)
	}
	r := &rotation{Steps: s, in: in, name: secrets.Name(Engine, in.InstanceID), slot: label(in.Slot), job: label(in.JobID)}
	var err error
	for range maxTries {
		var winner slotRow
		var open bool
		winner, open, err = r.try(ctx)
		if err == nil {
			return winner.output(in.Slot), nil
		}
		if !open {
			break
		}
	}
	return RotateOutput{}, fmt.Errorf("rotate %s slot %q: %w", r.name, r.slot, err)
}

// try reads, adds a version if the slot has none, decides the slot, and disables the losers. open means that the next
// read can settle the error.
func (r *rotation) try(ctx context.Context) (winner slotRow, open bool, err error) {
	versions, err := r.vault.Versions(ctx, r.name)
	if err != nil {
		return slotRow{}, false, err
	}
	candidate, found := r.candidate(versions)
	if !found && r.turned(versions) {
		if past, over, err := r.over(ctx, versions); err != nil || over {
			return past, false, err
		}
	}
	if !found {
		if candidate, err = r.add(ctx); err != nil {
			// Any version of this slot settles it: the next read finds it.
			return slotRow{}, errors.Is(err, secrets.ErrOutcomeUnknown), err
		}
	}
	claim := r.claim(candidate)
	winner, err = r.decide(ctx, claim)
	if err != nil {
		return slotRow{}, false, err
	}
	if winner.version == candidate.Version && !r.added {
		return winner, false, r.disableLosers(ctx, versions, winner.version)
	}
	// Other processes may have worked on this slot meanwhile: their versions from before the decision are visible
	// now.
	if versions, err = r.vault.Versions(ctx, r.name); err != nil {
		return slotRow{}, false, err
	}
	listed, enabled := lookUp(versions, winner.version)
	if !listed {
		return slotRow{}, false, fmt.Errorf("%w: the slot was rotated to version %s, which the secret store does not list; rotate under another slot",
			ErrVersionMissing, winner.version)
	}
	if !enabled {
		if winner, open, err = r.renew(ctx, winner, claim, versions); err != nil {
			return slotRow{}, open, err
		}
	}
	return winner, false, r.disableLosers(ctx, versions, winner.version)
}

// turned reports whether the slot has had a version, of which none is enabled.
func (r *rotation) turned(versions []secrets.Version) bool {
	return slices.ContainsFunc(versions, func(v secrets.Version) bool { return v.Tags[TagSlot] == r.slot })
}

// over reports whether the slot has ended: its version was announced, and later that of another slot, which is
// enabled.
func (r *rotation) over(ctx context.Context, versions []secrets.Version) (slotRow, bool, error) {
	rows, err := r.slots(ctx, r.in.InstanceID)
	if err != nil {
		return slotRow{}, false, err
	}
	at := slices.IndexFunc(rows, func(row slotRow) bool { return row.slot == r.slot })
	told := announced(versions, slotsOf(rows))
	if at < 0 || !rows[at].announced() || len(told) == 0 {
		return slotRow{}, false, nil
	}
	return rows[at], byActivity(rows[at].known(), told[len(told)-1]) < 0, nil
}

// renew settles a slot whose decided version is disabled. If it was retired regularly, it stays the result; otherwise
// it was disabled on purpose, and the slot gets claim's version instead.
func (r *rotation) renew(ctx context.Context, old, claim slotRow, versions []secrets.Version) (winner slotRow, open bool, err error) {
	if past, over, err := r.over(ctx, versions); err != nil || over {
		return past, false, err
	}
	return r.replace(ctx, old, claim, versions)
}

// replace decides the slot again for claim, unless claim's own version has been disabled meanwhile as a loser.
func (r *rotation) replace(ctx context.Context, old, claim slotRow, versions []secrets.Version) (winner slotRow, open bool, err error) {
	if _, enabled := lookUp(versions, claim.version); !enabled {
		return slotRow{}, true, fmt.Errorf("versions %s and %s of the slot are both disabled", old.version, claim.version)
	}
	claim.etag = old.etag
	if err := r.replaceSlots(ctx, claim); err != nil {
		open := errors.Is(err, tables.ErrPrecondition) || errors.Is(err, tables.ErrOutcomeUnknown)
		return slotRow{}, open, err
	}
	return claim, false, nil
}

// lookUp finds a version in a list.
func lookUp(versions []secrets.Version, version string) (listed, enabled bool) {
	at := slices.IndexFunc(versions, func(v secrets.Version) bool { return v.Version == version })
	return at >= 0, at >= 0 && versions[at].Enabled
}

// candidate picks the version to propose for the slot: the oldest enabled one, the same for all processes with the
// same data.
func (r *rotation) candidate(versions []secrets.Version) (secrets.Version, bool) {
	for _, v := range versions {
		if v.Enabled && v.Tags[TagSlot] == r.slot {
			return v, true
		}
	}
	return secrets.Version{}, false
}

// add makes a key and stores it.
func (r *rotation) add(ctx context.Context) (secrets.Version, error) {
	key, err := r.newKey()
	if err != nil {
		return secrets.Version{}, err
	}
	defer clear(key)
	r.added = true
	return r.vault.Add(ctx, r.name, key, map[string]string{TagSlot: r.slot, TagJob: r.job})
}

// disableLosers disables the slot's versions other than the winner. No call will return one of them: a slot's
// decision is read before a version is returned.
func (r *rotation) disableLosers(ctx context.Context, versions []secrets.Version, winner string) error {
	for _, v := range versions {
		if !v.Enabled || v.Tags[TagSlot] != r.slot || v.Version == winner {
			continue
		}
		if err := r.vault.Disable(ctx, r.name, v.Version); err != nil {
			return err
		}
	}
	return nil
}

// claim proposes candidate as the slot's version.
func (r *rotation) claim(candidate secrets.Version) slotRow {
	return slotRow{
		instanceID: r.in.InstanceID, tenantID: r.in.TenantID, slot: r.slot, jobID: r.job,
		secretName: r.name, version: candidate.Version, created: candidate.Created,
	}
}
