package orchestrator

import (
	"slices"
	"strings"
	"unicode"
)

// mailbox keeps the external events that nobody has asked for, in the order in which they came. What one of them costs does
// not depend on how many there are. The zero value is empty.
type mailbox struct {
	all     []*keptEvent            // those that are taken stay until they are the first, or many
	byName  map[string][]*keptEvent // the oldest first; by fold of the name
	taken   int
	arrived int // events, ever
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

// oldest is the first of that name; nil for none.
func (m *mailbox) oldest(name string) *keptEvent {
	if m.len() == 0 {
		return nil
	}
	if queue := m.byName[fold(name)]; len(queue) > 0 {
		return queue[0]
	}
	return nil
}

// take takes out what oldest gave.
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

// list gives up to most of the events, the oldest first.
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

// fold makes names the same that strings.EqualFold takes for the same.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}
