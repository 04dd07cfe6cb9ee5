package engine

// RunID is the id of the orchestration in which an engine does the work of a message, of which only the correlation id, the
// instance and the tenant count. It is "" for an engine that this pipeline does not know, and for an engine with one run per
// instance when the message names no instance. Runs of a singleton share an id, so the orchestration may stand for a run under
// another correlation id.
func (p *Pipeline) RunID(engine string, m Message) string {
	def, ok := p.byName[engine]
	if !ok || def.Singleton == PerInstance && m.InstanceID == "" {
		return ""
	}
	return (&attempt{Pipeline: p, def: def, message: m}).orchestrationID()
}
