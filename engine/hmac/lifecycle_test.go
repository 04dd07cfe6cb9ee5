package hmac_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/engine/hmac"
	"github.com/vibedata/roundhouse/services/secrets"
)

func TestStates(t *testing.T) {
	t.Parallel()
	// Versions are named a, b and so on; a lower-case version belongs to the slot of its name, a version with a
	// number to that of its letter, H to none. After a dash it is disabled.
	versions := func(names ...string) (all []secrets.Version) {
		for _, name := range names {
			v := secrets.Version{Version: name, Created: start, Enabled: true}
			if v.Version[0] == '-' {
				v.Version, v.Enabled = name[1:], false
			}
			if v.Version != "H" {
				v.Tags = map[string]string{hmac.TagSlot: v.Version[:1]}
			}
			all = append(all, v)
		}
		return all
	}
	// A slot is active after so many hours, and its grace ends three hours later; below 0, it is not announced.
	slot := func(version string, hours int) hmac.Slot {
		s := hmac.Slot{Name: version[:1], Version: version}
		if hours >= 0 {
			s.ActiveAt = start.Add(time.Duration(hours) * time.Hour)
			s.GraceEndsAt = s.ActiveAt.Add(3 * time.Hour)
		}
		return s
	}
	at := func(hours float64) time.Time { return start.Add(time.Duration(hours * float64(time.Hour))) }
	cases := []struct {
		what     string
		versions []secrets.Version
		slots    []hmac.Slot
		now      time.Time
		want     string
	}{
		{"nothing", nil, nil, start, "[]"},
		{"not decided", versions("a"), nil, start, "[pending]"},
		{"nobody was told", versions("a"), []hmac.Slot{slot("a", -1)}, start, "[pending]"},
		{"the first", versions("a"), []hmac.Slot{slot("a", 0)}, start, "[current]"},
		{"the first, not active yet", versions("a"), []hmac.Slot{slot("a", 1)}, start, "[current]"},
		{"the first, long after", versions("a"), []hmac.Slot{slot("a", 0)}, at(1000), "[current]"},
		{"followed, not active yet", versions("a", "b"), []hmac.Slot{slot("a", 0), slot("b", 2)}, at(1), "[previous current]"},
		{"followed, in grace", versions("a", "b"), []hmac.Slot{slot("a", 0), slot("b", 2)}, at(4.9), "[previous current]"},
		{"followed, the grace is over", versions("a", "b"), []hmac.Slot{slot("a", 0), slot("b", 2)}, at(5), "[retired current]"},
		{"the order of slots and versions says nothing", versions("b", "a"), []hmac.Slot{slot("b", 2), slot("a", 0)}, at(5), "[current retired]"},
		{"two overlap", versions("a", "b", "c"), []hmac.Slot{slot("a", 0), slot("b", 2), slot("c", 3)}, at(4), "[previous previous current]"},
		{"of two that overlap one is over", versions("a", "b", "c"), []hmac.Slot{slot("a", 0), slot("b", 2), slot("c", 3)}, at(5), "[retired previous current]"},
		{"of two that overlap both are over", versions("a", "b", "c"), []hmac.Slot{slot("a", 0), slot("b", 2), slot("c", 3)}, at(6), "[retired retired current]"},
		{"active at once", versions("a", "b"), []hmac.Slot{slot("a", 2), slot("b", 2)}, at(5), "[retired current]"},
		{"disabled", versions("-a", "b"), []hmac.Slot{slot("a", 0), slot("b", 2)}, at(2), "[retired current]"},
		{"the last is disabled by hand", versions("a", "-b"), []hmac.Slot{slot("a", 0), slot("b", 2)}, at(100), "[current retired]"},
		{"one in between is disabled by hand", versions("a", "-b", "c"), []hmac.Slot{slot("a", 0), slot("b", 2), slot("c", 9)}, at(11), "[previous retired current]"},
		{"by hand", versions("H", "a"), []hmac.Slot{slot("a", 0)}, at(100), "[foreign current]"},
		{"by hand, in a slot all the same", versions("H", "a"), []hmac.Slot{slot("H", 0), slot("a", 1)}, at(100), "[foreign current]"},
		{"by hand, and disabled", versions("-H"), nil, at(100), "[foreign]"},
		{"the slot has another version", versions("a1", "a2", "b"), []hmac.Slot{slot("a2", 0), slot("b", 2)}, at(100), "[pending retired current]"},
		{"another slot's version", versions("a"), []hmac.Slot{{Name: "b", Version: "a", ActiveAt: start}}, at(100), "[pending]"},
		{"a later one that nobody was told of", versions("a", "b", "c"), []hmac.Slot{slot("a", 0), slot("b", 2), slot("c", -1)}, at(100), "[retired current pending]"},
		{"an earlier one that nobody was told of", versions("a", "b"), []hmac.Slot{slot("a", -1), slot("b", 2)}, at(100), "[pending current]"},
		{"not listed", versions("a"), []hmac.Slot{slot("a", 0), slot("b", 2)}, at(100), "[current]"},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, fmt.Sprint(hmac.States(c.versions, c.slots, c.now))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}

func TestTiming(t *testing.T) {
	t.Parallel()
	for timing, good := range map[hmac.Timing]bool{
		hmac.DefaultTiming():     true,
		{}:                       true,
		{Grace: time.Hour}:       true,
		{Propagation: time.Hour}: true, // without grace it is ignored
		{Propagation: time.Minute, Grace: time.Hour}:   true,
		{Propagation: time.Hour, Grace: time.Hour}:     false,
		{Propagation: 2 * time.Hour, Grace: time.Hour}: false,
		{Grace: -1}:                         false,
		{Propagation: -1}:                   false,
		{Propagation: -1, Grace: time.Hour}: false,
	} {
		if err := timing.Validate(); (err == nil) != good {
			t.Errorf("%+v: %v", timing, err)
		}
	}
}
