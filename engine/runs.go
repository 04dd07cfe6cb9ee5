package engine

// RunID returns the id of the orchestration that an engine runs for a message, from the correlation id, the instance
// and the tenant alone. It is "" for an unknown engine, and for an engine with one run per instance when the message
// names no instance. Runs of a singleton share an id, so the orchestration may represent a run under another
// correlation id.
func (p *Pipeline) RunID(engine string, m Message) string {
	def, ok := p.byName[engine]
	if !ok || def.Singleton == PerInstance && m.InstanceID == "" {
		return ""
	}
	return (&attempt{Pipeline: p, def: def, message: m}).orchestrationID()
}
