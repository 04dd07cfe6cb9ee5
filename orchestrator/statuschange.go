package orchestrator

import "time"

// StatusChange reports that an orchestration has begun, or that its status has changed.
type StatusChange struct {
	ID           string
	Orchestrator string
	// Tag is the key of its business reference, "" for none.
	Tag string
	// TenantID is the tenant of the orchestration, "" for the platform.
	TenantID string
	// CorrelationID is the correlation id of its run, "" for none.
	CorrelationID string
	CreatedAt     time.Time
	Status        Status
	// Was is the previous status; "" when the orchestration is new.
	Was Status
}

// reportStatus reports the status after a round that has become durable.
func (d *driver) reportStatus() {
	if d.rt.config.StatusChanged == nil {
		return
	}
	x := d.execution
	status, _ := x.currentStatus()
	was := d.reportedStatus
	if d.reportedStatus = status; len(d.rounds) > 0 && status == was {
		return
	}
	n := StatusChange{ID: d.start.ID, Orchestrator: x.name, TenantID: d.start.TenantID, CorrelationID: d.start.CorrelationID, CreatedAt: d.createdAt, Status: status, Was: was}
	if x.reference != nil {
		n.Tag = x.reference.Key
	}
	d.rt.config.StatusChanged(n)
}
