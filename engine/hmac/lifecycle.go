package hmac

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
)

// State is where a version of an instance's key is in its life.
type State string

// The states.
const (
	// StatePending: made for a slot, and no consumer was told of it. It is its slot's run that goes on with it.
	StatePending State = "pending"
	// StateCurrent: of the enabled versions, the one to be used last. Signers use it from its ActiveAt on.
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
	// Name is what its versions are tagged with, Version the one that it was rotated to.
	Name, Version string
	// ActiveAt is from when the version is signed with, GraceEndsAt until when the one before it is accepted. Both are zero
	// until consumers are told of the version.
	ActiveAt, GraceEndsAt time.Time
}

// States says where each version of an instance's key is at a time: one state a version. The slots are all that are
// decided; versions follow each other in the order in which they become active, and where two do at once, by name.
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

// announced are the slots whose version is enabled and consumers were told of, in the order in which they become active.
// A version that somebody disabled has no part in the order: what it was to follow is used on.
func announced(versions []secrets.Version, slots []Slot) []Slot {
	usable := map[string]string{} // the slot that an enabled version is tagged with
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

// predecessor is the version that a new one takes the place of: the last that consumers were told of, or, as long as they
// were told of none, the newest that no rotation made; "" when there is none.
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
