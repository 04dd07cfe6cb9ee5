package engine

import (
	"slices"

	"github.com/vibedata/roundhouse/orchestrator"
)

// FailAs is an error for an orchestrator to return as it is: the run ends, and the dead letter of its message has this reason
// and the text of err. The next attempt, which a person retries, begins anew or goes on, as after any other error.
func FailAs(reason Reason, err error) error {
	return &orchestrator.Failure{Message: err.Error(), Code: string(reason), Permanent: true}
}

// reasonOfFailure is why a run that failed for good becomes a dead letter.
func reasonOfFailure(f *orchestrator.Failure) Reason {
	if reason := Reason(f.Code); slices.Contains([]Reason{ReasonNotAcknowledged, ReasonStillInUse}, reason) {
		return reason
	}
	return ReasonPermanent
}
