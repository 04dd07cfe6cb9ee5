package year

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// part is a service with outages.
type part string

// The parts. A receiver's outage has its name after receiverOf.
const (
	vault         part = "vault"
	directory     part = "directory"
	authority     part = "authority"
	components    part = "components"
	tlsTarget     part = "target of certificates"
	publisherHost part = "host of the publisher"
	managedHost   part = "host of the managed application"
)

func receiverOf(name string) part { return part("receiver " + name) }

// asked reports whether the part is used every day. Certificates are renewed every two months, and instances are bought
// now and then; while a host is down, no process runs that could report it.
func (p part) asked() bool { return p == vault || p == components || p == receiverOf("receiver-keys") }

// outage is a time range in which a part does not work.
type outage struct {
	part     part
	from, to time.Time
}

// outages are all of a year.
type outages []outage

// drawOutages draws the outages of a year: about one a month for each part, between ten minutes and its longest.
func drawOutages(random *rand.Rand, from, to time.Time, longest map[part]time.Duration) outages {
	const shortest = 10 * time.Minute
	var all outages
	for _, p := range slices.Sorted(maps.Keys(longest)) {
		for at := from.Add(calm(random)); at.Before(to); at = at.Add(calm(random)) {
			span := float64(longest[p]) / float64(shortest)
			end := at.Add(time.Duration(float64(shortest) * math.Pow(span, random.Float64())))
			all = append(all, outage{p, at, end})
			at = end
		}
	}
	return all
}

// calm returns how long a part works.
func calm(random *rand.Rand) time.Duration {
	return time.Hour + time.Duration(random.ExpFloat64()*float64(30*24*time.Hour))
}

// down reports whether a part has an outage now.
func (all outages) down(p part) bool {
	now := time.Now()
	return slices.ContainsFunc(all, func(o outage) bool { return o.part == p && !now.Before(o.from) && now.Before(o.to) })
}

// any reports whether any part has an outage now.
func (all outages) any() bool {
	now := time.Now()
	return slices.ContainsFunc(all, func(o outage) bool { return !now.Before(o.from) && now.Before(o.to) })
}

// String lists them, for a test that has failed.
func (all outages) String() string {
	var text strings.Builder
	for _, o := range all {
		fmt.Fprintf(&text, "%s to %s (%s): %s\n", o.from.Format(time.DateTime), o.to.Format(time.DateTime), o.to.Sub(o.from).Round(time.Minute), o.part)
	}
	return text.String()
}
