// Package release is what a publisher and its managed applications tell each other about releases: the events that go one way
// and the other, and which of two releases is the newer one.
//
// A Notice tells an instance of a release (EventAvailable). A Finished tells the publisher how an update of the instance ended
// (EventFinished), and a Health that the instance became another than it was (EventHealth). The events of an instance leave in
// order; who takes them must nevertheless expect an older one behind a newer one, since one that was given up may be sent again.
//
// It owns no storage keys.
package release

import (
	"time"

	"golang.org/x/mod/semver"
)

// The types of the events.
const (
	EventAvailable = "update.available"
	EventFinished  = "update.finished"
	EventHealth    = "health.changed"
)

// Component is a component and its version.
type Component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Notice is the payload of EventAvailable: the release that an instance has to have.
type Notice struct {
	InstanceID string `json:"instanceId"`
	TenantID   string `json:"tenantId,omitempty"`
	Ring       string `json:"ring"`
	Version    string `json:"version"`
	// Released is when the release was made, the zero time when the publisher does not say.
	Released   time.Time   `json:"released,omitzero"`
	Components []Component `json:"components,omitempty"`
}

// Status is how an update ended.
type Status string

// The ends of an update. All but RolledBack and Failed are successes of the run.
const (
	// Updated: the instance has the version.
	Updated Status = "Updated"
	// Superseded: a newer release was wanted already, and nothing was touched.
	Superseded Status = "Superseded"
	// Rejected: a person decided against it.
	Rejected Status = "Rejected"
	// RolledBack: a component failed, and all components are what they were before.
	RolledBack Status = "RolledBack"
	// Failed: it did not come to an end. Another attempt may follow.
	Failed Status = "Failed"
)

// Finished is the payload of EventFinished.
type Finished struct {
	InstanceID string `json:"instanceId"`
	Status     Status `json:"status"`
	// Ring is that of the notice, "" when the update was not asked for by one.
	Ring string `json:"ring,omitempty"`
	// Wanted is the version that the update was for, "" for an update of one component.
	Wanted string `json:"wanted,omitempty"`
	// Version is what the instance has now, "" when the update has not found out.
	Version string `json:"version,omitempty"`
	// SupersededBy is the version that was wanted instead.
	SupersededBy string `json:"supersededBy,omitempty"`
	// Reason says why it failed, for people.
	Reason string `json:"reason,omitempty"`
	// CorrelationID names the run in the managed application.
	CorrelationID string    `json:"correlationId"`
	FinishedAtUtc time.Time `json:"finishedAtUtc"`
}

// Health is the payload of EventHealth: what an instance is, and the check that found it so first.
type Health struct {
	InstanceID string    `json:"instanceId"`
	Status     string    `json:"status"`
	SinceUtc   time.Time `json:"sinceUtc"`
}

// Version is what is known of the age of a release.
type Version struct {
	Version string
	// Released is when it was made, the zero time when nobody said.
	Released time.Time
}

// Older reports whether v is known to be older than w: by semantic versioning if both are such versions, else by the times at
// which they were released, if both are known. Two releases of which neither is older have no order.
func (v Version) Older(w Version) bool {
	if order, ok := compare(v.Version, w.Version); ok && order != 0 {
		return order < 0
	}
	return !v.Released.IsZero() && v.Released.Before(w.Released)
}

// Outdated reports whether an instance that has one version has to become another: when it is behind, or different where the two
// have no order. One that is ahead stays where it is.
func Outdated(has, wants string) bool {
	if order, ok := compare(has, wants); ok {
		return order < 0
	}
	return has != wants
}

// compare orders two versions by semantic versioning; false when one of them is no such version.
func compare(v, w string) (int, bool) {
	v, w = "v"+v, "v"+w
	if !semver.IsValid(v) || !semver.IsValid(w) {
		return 0, false
	}
	return semver.Compare(v, w), true
}
