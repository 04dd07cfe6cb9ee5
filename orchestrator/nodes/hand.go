package nodes

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// maxHand bounds a Hand, in bytes of JSON: it is in a message of 48 KiB, and in a property of 32 Ki characters.
const maxHand = 24 << 10

// Hand is the work in progress of a node.
type Hand struct {
	// At is when the node wrote this, by its own clock, and Since when it began the oldest of the work.
	At    time.Time `json:"at"`
	Since time.Time `json:"since"`
	// Count is the amount of work. Orchestrations are those that the node drives; More is set if the list omits some
	// because of its size.
	Count          int      `json:"count"`
	Orchestrations []string `json:"orchestrations,omitempty"`
	More           bool     `json:"more,omitempty"`
	// Messages are those that the host keeps hidden, and that only their redelivery would reveal.
	Messages []Message `json:"messages,omitempty"`
}

// Message is a message that a host has received.
type Message struct {
	Queue      string `json:"queue"`
	ID         string `json:"id"`
	PopReceipt string `json:"popReceipt"`
}

// held is one piece of work in progress; without orchestration and message, it only keeps the node alive to the
// others.
type held struct {
	orchestration string
	message       Message
	since         time.Time
}

// maxGivenUp bounds the released work that a node still names.
const maxGivenUp = 1000

// inHand returns the work in progress, oldest first, and the work that was released while storage was unreachable. The
// caller holds mu.
func (n *Node) inHand() []held {
	work := make([]held, 0, len(n.held)+len(n.givenUp))
	for _, key := range slices.Sorted(maps.Keys(n.held)) {
		work = append(work, n.held[key])
	}
	return append(work, n.givenUp...)
}

// handOf lists the work in progress, the oldest first, as far as it fits.
func handOf(work []held, now time.Time) Hand {
	h := Hand{At: now, Since: now, Count: len(work)}
	slices.SortStableFunc(work, func(a, b held) int { return a.since.Compare(b.since) })
	seen := map[string]bool{}
	size := 0
	for i, one := range work {
		if i == 0 && one.since.Before(now) {
			h.Since = one.since
		}
		text, _ := json.Marshal(one.message) // strings can be marshaled
		if size += len(one.orchestration) + len(text); size > maxHand {
			h.More = true
			return h
		}
		if id := one.orchestration; id != "" && !seen[id] {
			seen[id] = true
			h.Orchestrations = append(h.Orchestrations, id)
		}
		if one.message.ID != "" {
			h.Messages = append(h.Messages, one.message)
		}
	}
	return h
}
