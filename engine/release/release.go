// Package release defines the events about releases between a publisher and its managed applications, and the order
// of releases.
//
// A Notice announces a release to an instance (EventAvailable). A Finished reports the outcome of an instance's
// update to the publisher (EventFinished), and a Health a status change of the instance (EventHealth). The events of
// an instance are sent in order; receivers must nevertheless expect an older one behind a newer one, since a dead
// event may be sent again.
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
	// Released is when the release was made, zero when the publisher does not report it.
	Released   time.Time   `json:"released,omitzero"`
	Components []Component `json:"components,omitempty"`
}

// Status is the outcome of an update.
type Status string

// The outcomes of an update. All but RolledBack and Failed are successes of the run.
const (
	// Updated: the instance has the version.
	Updated Status = "Updated"
	// Superseded: a newer release was already wanted, and nothing was changed.
	Superseded Status = "Superseded"
	// Rejected: an approver rejected it.
	Rejected Status = "Rejected"
	// RolledBack: a component failed, and all components have their previous versions.
	RolledBack Status = "RolledBack"
	// Failed: it was not completed. Another attempt may follow.
	Failed Status = "Failed"
)

// Finished is the payload of EventFinished.
type Finished struct {
	InstanceID string `json:"instanceId"`
	Status     Status `json:"status"`
	// Ring is that of the notice, "" for an update without one.
	Ring string `json:"ring,omitempty"`
	// Wanted is the version that the update was for, "" for an update of one component.
	Wanted string `json:"wanted,omitempty"`
	// Version is the current version of the instance, "" when the update does not know it.
	Version string `json:"version,omitempty"`
	// SupersededBy is the version that was wanted instead.
	SupersededBy string `json:"supersededBy,omitempty"`
	// Reason is the reason of a failure, for operators.
	Reason string `json:"reason,omitempty"`
	// CorrelationID names the run in the managed application.
	CorrelationID string    `json:"correlationId"`
	FinishedAtUtc time.Time `json:"finishedAtUtc"`
}

// Health is the payload of EventHealth: the status of an instance, and the first check with it.
type Health struct {
	InstanceID string    `json:"instanceId"`
	Status     string    `json:"status"`
	SinceUtc   time.Time `json:"sinceUtc"`
}

// Version is a release with its known age.
type Version struct {
	Version string
	// Released is when it was made, zero when unknown.
	Released time.Time
}

// Older reports whether v is known to be older than w: by semantic versioning if both are such versions, else by
// their release times if both are known. Otherwise the two releases have no order.
func (v Version) Older(w Version) bool {
	if order, ok := compare(v.Version, w.Version); ok && order != 0 {
		return order < 0
	}
	return !v.Released.IsZero() && v.Released.Before(w.Released)
}

// Outdated reports whether an instance has to be updated from one version to another: when it is behind, or different
// if the two have no order. A newer instance stays unchanged.
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
