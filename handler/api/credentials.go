package api

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

// credentialItem is a current secret or certificate that expires.
type credentialItem struct {
	Engine       string    `json:"engine"`
	Name         string    `json:"name"`
	ExpiresAtUtc time.Time `json:"expiresAtUtc"`
	Expired      bool      `json:"expired"`
}

// maxWithinDays bounds the period of a list of credentials, and expiringWithinDays is its default, as in the metrics.
const maxWithinDays, expiringWithinDays = 3650, 14

// listCredentials lists the credentials that expire within some days, the earliest first, including expired ones.
// They are few, and cached, so each page reads all of them.
func (a *api) listCredentials(ctx context.Context, r *request) (reply, error) {
	q := newQuery(r.http.URL.RawQuery, "withinDays", "limit", "continuationToken")
	days := cmp.Or(q.number("withinDays", maxWithinDays), expiringWithinDays)
	limit := cmp.Or(q.limit(), engine.DefaultLimit)
	if err := q.err(); err != nil {
		return reply{}, err
	}
	fingerprint := fingerprintOf("credentials", days)
	place, err := openToken(q.values.Get("continuationToken"), fingerprint)
	if err != nil {
		return reply{}, err
	}
	all, err := a.keeps(ctx)
	if err != nil {
		return reply{}, err
	}
	items := expiring(all, a.now(), days)
	begin, err := strconv.Atoi(cmp.Or(place, "0"))
	if err != nil || begin < 0 {
		return reply{}, badToken()
	}
	items = items[min(begin, len(items)):]
	next := ""
	if len(items) > limit {
		items, next = items[:limit], strconv.Itoa(begin+limit)
	}
	return reply{data: listOf(items, sealToken(next, fingerprint), func(i credentialItem) credentialItem { return i })}, nil
}

// expiring returns the credentials that expire within some days, the earliest first.
func expiring(all map[string][]engine.Credential, now time.Time, days int) (items []credentialItem) {
	for name, some := range all {
		for _, c := range some {
			if !c.ExpiresAt.IsZero() && c.ExpiresAt.Before(now.AddDate(0, 0, days)) {
				items = append(items, credentialItem{name, c.Name, c.ExpiresAt.UTC(), !c.ExpiresAt.After(now)})
			}
		}
	}
	slices.SortFunc(items, func(a, b credentialItem) int {
		return cmp.Or(a.ExpiresAtUtc.Compare(b.ExpiresAtUtc), cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Name, b.Name))
	})
	return items
}
