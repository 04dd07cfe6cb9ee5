package hmac

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
)

// State is the stage of a key version in its life.
type State string

// The states.
const (
	// StatePending: made for a slot, and not announced yet. Its slot's run continues with it.
	StatePending State = "pending"
	// StateCurrent: of the enabled versions, the one used last. Signers use it from its ActiveAt on.
	StateCurrent State = "current"
	// StatePrevious: another one follows it, and verifiers still accept it.
	StatePrevious State = "previous"
	// StateRetired: disabled, or to be disabled, because the grace of the one that follows it is over.
	StateRetired State = "retired"
	// StateForeign: no rotation made it.
	StateForeign State = "foreign"
)

// Slot is a decided slot of an instance.
type Slot struct {
	// Name is the slot in its versions' tags, Version the version of the slot.
	Name, Version string
	// ActiveAt is from when signers use the version, GraceEndsAt until when its predecessor is accepted. Both are
	// zero until the version is announced.
	ActiveAt, GraceEndsAt time.Time
}

// States returns the state of each version of an instance's key at a time. slots holds all decided slots; versions
// follow each other by the time when they become active, and then by name.
func States(versions []secrets.Version, slots []Slot, now time.Time) []State {
	told := announced(versions, slots)
	states := make([]State, len(versions))
	for i, v := range versions {
		at := slices.IndexFunc(told, func(s Slot) bool { return s.Version == v.Version })
		switch {
		case v.Tags[TagSlot] == "":
			states[i] = StateForeign
		case !v.Enabled:
			states[i] = StateRetired
		case at < 0:
			states[i] = StatePending
		case at == len(told)-1:
			states[i] = StateCurrent
		case now.Before(told[at+1].GraceEndsAt):
			states[i] = StatePrevious
		default:
			states[i] = StateRetired
		}
	}
	return states
}

// announced returns the slots with an enabled and announced version, in the order in which they become active. A
// disabled version has no part in the order: its predecessor stays in use.
func announced(versions []secrets.Version, slots []Slot) []Slot {
	usable := map[string]string{} // the slot tag of an enabled version
	for _, v := range versions {
		if v.Enabled && v.Tags[TagSlot] != "" {
			usable[v.Version] = v.Tags[TagSlot]
		}
	}
	var told []Slot
	for _, s := range slots {
		if !s.ActiveAt.IsZero() && usable[s.Version] == s.Name {
			told = append(told, s)
		}
	}
	slices.SortFunc(told, byActivity)
	return told
}

// byActivity orders slots by when their versions become active.
func byActivity(a, b Slot) int {
	return cmp.Or(a.ActiveAt.Compare(b.ActiveAt), strings.Compare(a.Version, b.Version))
}

// predecessor returns the version that a new one replaces: the last announced one, or, if none was announced, the
// newest that no rotation made; "" for none.
func predecessor(versions []secrets.Version, slots []Slot) string {
	if told := announced(versions, slots); len(told) > 0 {
		return told[len(told)-1].Version
	}
	for _, v := range slices.Backward(versions) {
		if v.Enabled && v.Tags[TagSlot] == "" {
			return v.Version
		}
	}
	return ""
}
