package orchestrator

import "time"

// Note says that an orchestration has begun, or that its status has changed.
type Note struct {
	ID           string
	Orchestrator string
	// Tag is the key of its business reference, "" for none.
	Tag       string
	CreatedAt time.Time
	Status    Status
	// Was is the status before; "" when there was no orchestration.
	Was Status
}

// note tells of a round that is durable, before it is taken into the execution.
func (d *driver) note() {
	if d.rt.config.Noted == nil {
		return
	}
	x := d.execution
	status, _ := x.standing()
	was := d.noted
	if d.noted = status; len(d.rounds) > 0 && status == was {
		return
	}
	n := Note{ID: d.start.ID, Orchestrator: x.name, CreatedAt: d.createdAt, Status: status, Was: was}
	if x.reference != nil {
		n.Tag = x.reference.Key
	}
	d.rt.config.Noted(n)
}
