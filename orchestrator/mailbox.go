package orchestrator

import (
	"slices"
	"strings"
	"unicode"
)

// mailbox holds the external events that no call waits for, in the order in which they arrived. The cost of one event
// does not depend on their number. The zero value is empty.
type mailbox struct {
	all     []*keptEvent            // taken ones are removed when they are first, or many
	byName  map[string][]*keptEvent // oldest first, by the folded name
	taken   int
	arrived int // how many events have ever arrived
}

// keptEvent is an event in a mailbox.
type keptEvent struct {
	event
	key   string // fold of the name
	place int
	taken bool
}

func (m *mailbox) len() int { return len(m.all) - m.taken }

func (m *mailbox) put(events ...event) {
	if m.byName == nil {
		m.byName = map[string][]*keptEvent{}
	}
	for _, e := range events {
		k := &keptEvent{event: e, key: fold(e.Name), place: m.arrived}
		m.arrived++
		m.all = append(m.all, k)
		m.byName[k.key] = append(m.byName[k.key], k)
	}
}

// oldest returns the first event of that name; nil for none.
func (m *mailbox) oldest(name string) *keptEvent {
	if m.len() == 0 {
		return nil
	}
	if queue := m.byName[fold(name)]; len(queue) > 0 {
		return queue[0]
	}
	return nil
}

// take removes the event that oldest returned.
func (m *mailbox) take(k *keptEvent) {
	if m.byName[k.key] = m.byName[k.key][1:]; len(m.byName[k.key]) == 0 {
		delete(m.byName, k.key)
	}
	k.taken = true
	m.taken++
	for len(m.all) > 0 && m.all[0].taken {
		m.all[0], m.all = nil, m.all[1:]
		m.taken--
	}
	if m.taken > len(m.all)/2 {
		m.all = slices.DeleteFunc(m.all, func(k *keptEvent) bool { return k.taken })
		m.taken = 0
	}
}

// list returns up to most events, oldest first.
func (m *mailbox) list(most int) []event {
	var events []event
	for _, k := range m.all {
		if len(events) == most {
			break
		}
		if !k.taken {
			events = append(events, k.event)
		}
	}
	return events
}

// fold maps all names that strings.EqualFold considers equal to one.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}
