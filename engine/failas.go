package engine

import (
	"slices"

	"github.com/vibedata/roundhouse/orchestrator"
)

// FailAs returns an error for an orchestrator to return unchanged: the run ends, and the dead letter of its message
// has this reason and the text of err. The attempt of an operator's retry starts over or continues, as after any
// other error.
func FailAs(reason Reason, err error) error {
	return &orchestrator.Failure{Message: err.Error(), Code: string(reason), Permanent: true}
}

// reasonOfFailure returns the reason of the dead letter of a run that failed permanently.
func reasonOfFailure(f *orchestrator.Failure) Reason {
	if reason := Reason(f.Code); slices.Contains([]Reason{ReasonNotAcknowledged, ReasonStillInUse}, reason) {
		return reason
	}
	return ReasonPermanent
}
