package update

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/vibedata/roundhouse/engine"
)

const (
	maxComponents = 50
	// defaultDeadline and longestDeadline bound the wait of an update for its approval.
	defaultDeadline = 24 * time.Hour
	longestDeadline = 30 * 24 * time.Hour
)

// Input is the engine's own part of a message.
type Input struct {
	// Version is the version of the instance when all components are updated. Required for process; unused by
	// component-update.
	Version string `json:"version,omitempty"`
	// Components are updated one after the other: 1 to 50 for process, one for component-update.
	Components []Target `json:"components"`
	// Approval makes the update wait for an approver before it starts. Without it, Config.Approvals of the ring
	// applies.
	Approval *ApprovalRequest `json:"approval,omitempty"`
	// Ring is the ring of the notice of the update, "" for none.
	Ring string `json:"ring,omitempty"`
	// Released is when the release was made. It orders releases whose versions have no order.
	Released time.Time `json:"released,omitzero"`
	// Downgrade allows the update to install an older release. Without it, an update behind a newer one is
	// superseded.
	Downgrade bool `json:"downgrade,omitempty"`
}

// Target is a component and its version: 1 to 64 letters, digits and . _ + - each.
type Target struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ApprovalRequest lists the approvers, as orchestrator.HumanTask does, and the deadline: 1 s to 30 days, 24 h for 0.
type ApprovalRequest struct {
	DeadlineSeconds int64    `json:"deadlineSeconds,omitempty"`
	Roles           []string `json:"roles,omitempty"`
	Assignee        string   `json:"assignee,omitempty"`
	TenantID        string   `json:"tenantId,omitempty"`
}

func (a ApprovalRequest) valid() bool {
	return a.DeadlineSeconds >= 0 && a.DeadlineSeconds <= int64(longestDeadline/time.Second)
}

func (a ApprovalRequest) deadline() time.Duration {
	if a.DeadlineSeconds == 0 {
		return defaultDeadline
	}
	return time.Duration(a.DeadlineSeconds) * time.Second
}

// word matches valid names and versions: they become parts of paths.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)

func validate(operation, instanceID string, in Input) error {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInput}, args...)...))
	}
	if instanceID == engine.PublisherInstance {
		complain("instanceId is required")
	}
	switch n := len(in.Components); {
	case operation != "" && operation != OperationProcess && operation != OperationComponentUpdate:
		complain("operation %.64q is neither %s nor %s", operation, OperationProcess, OperationComponentUpdate)
	case operation == OperationComponentUpdate && n != 1:
		complain("%s needs one component, not %d", OperationComponentUpdate, n)
	case n < 1 || n > maxComponents:
		complain("1 to %d components are needed, not %d", maxComponents, n)
	}
	if operation != OperationComponentUpdate && !word.MatchString(in.Version) {
		complain("version %.80q", in.Version)
	}
	seen := map[string]bool{}
	for _, c := range in.Components {
		if !word.MatchString(c.Name) || !word.MatchString(c.Version) {
			complain("component %.80q in version %.80q", c.Name, c.Version)
		}
		if seen[c.Name] {
			complain("component %s is named twice", c.Name)
		}
		seen[c.Name] = true
	}
	if in.Ring != "" && !word.MatchString(in.Ring) {
		complain("ring %.80q", in.Ring)
	}
	if a := in.Approval; a != nil && !a.valid() {
		complain("an approval within %d s", a.DeadlineSeconds)
	}
	return errors.Join(errs...)
}
