package health

import "time"

// Status is the state of a check, or of a report: that of the worst check.
type Status string

// The statuses, best first.
const (
	Pass Status = "pass"
	Warn Status = "warn" // works, but needs attention
	Fail Status = "fail"
)

// Word returns the status in words: Healthy, Degraded or Unhealthy.
func (s Status) Word() string {
	switch s {
	case Pass:
		return "Healthy"
	case Warn:
		return "Degraded"
	default:
		return "Unhealthy"
	}
}

func (s Status) rank() int {
	switch s {
	case Pass:
		return 0
	case Warn:
		return 1
	default:
		return 2
	}
}

// worse returns the worse of two statuses.
func worse(a, b Status) Status {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// Report is the body of an answer, in the form of application/health+json.
type Report struct {
	Status Status `json:"status"`
	// ReleaseID is the version of the program, "" if unknown.
	ReleaseID string `json:"releaseId,omitempty"`
	// Output is the reason why nothing was checked; "" otherwise.
	Output string `json:"output,omitempty"`
	// Checks holds measurements by component and name, such as outbox:backlog; each list has one element.
	Checks map[string][]Measurement `json:"checks,omitempty"`
}

// Measurement is the result of one check.
type Measurement struct {
	// ComponentType is datastore or component.
	ComponentType string `json:"componentType"`
	ObservedValue any    `json:"observedValue,omitempty"`
	ObservedUnit  string `json:"observedUnit,omitempty"`
	Status        Status `json:"status"`
	// Time is when it was measured, in UTC.
	Time time.Time `json:"time"`
	// Output describes the problem; "" with Pass.
	Output string `json:"output,omitempty"`
}
