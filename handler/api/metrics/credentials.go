package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vibedata/roundhouse/engine"
)

// Waiting exports, in the process that has the lease, how many credentials wait for their consumers, by engine;
// engines lists those that rotate, which are always exported.
func (m *Metrics) Waiting(count func(ctx context.Context) (map[string]int, error), engines []string) {
	share(m, count, func(r *prometheus.Registry, counts map[string]int) {
		waiting := gauges(r, "credentials_waiting", "Keys and passwords whose older version is not retired, because a new one has not arrived at everybody.", "engine")
		for _, name := range engines {
			waiting.WithLabelValues(name).Set(float64(counts[name]))
		}
	})
}

// expiringSoon is the time before its expiry from which a credential counts as expiring: long enough to detect a
// missing rotation and to fix it.
const expiringSoon = 14 * 24 * time.Hour

// Expiring exports, in the process that has the lease, the expiries of the engines' credentials, by engine.
func (m *Metrics) Expiring(list func(ctx context.Context) (map[string][]engine.Credential, error), now func() time.Time) {
	share(m, list, func(r *prometheus.Registry, all map[string][]engine.Credential) {
		earliest := gauges(r, "credentials_earliest_expiry_timestamp_seconds", "When that secret or certificate in use expires that does so first; absent without one.", "engine")
		expiring := gauges(r, "credentials_expiring", "Secrets and certificates in use that expire within 14 days, those that have expired included.", "engine")
		expired := gauges(r, "credentials_expired", "Secrets and certificates in use that have expired.", "engine")
		for name, credentials := range all {
			first, soon, over := expiries(credentials, now())
			if !first.IsZero() {
				earliest.WithLabelValues(name).Set(unixSeconds(first))
			}
			expiring.WithLabelValues(name).Set(float64(soon))
			expired.WithLabelValues(name).Set(float64(over))
		}
	})
}

// expiries returns the first expiry of some credentials, and how many expire soon, and have expired.
func expiries(all []engine.Credential, now time.Time) (first time.Time, soon, over int) {
	for _, c := range all {
		if c.ExpiresAt.IsZero() {
			continue
		}
		if first.IsZero() || c.ExpiresAt.Before(first) {
			first = c.ExpiresAt
		}
		if c.ExpiresAt.Before(now.Add(expiringSoon)) {
			soon++
		}
		if !c.ExpiresAt.After(now) {
			over++
		}
	}
	return first, soon, over
}
