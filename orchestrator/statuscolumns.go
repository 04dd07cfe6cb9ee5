package orchestrator

import "time"

// statusColumns keeps the columns of an execution's status row from round to round. Everything waits for the commit of
// a round, so a column that has not changed is not made again. Stores must not keep the values they are given.
type statusColumns struct {
	of        *execution // the execution of the row; nil before the first round
	createdAt time.Time
	columns   map[string]any
}

// text sets a column; "" removes it.
func (r *statusColumns) text(name, value string) {
	if value == "" {
		delete(r.columns, name)
		return
	}
	setColumn(r, name, value)
}

// name is text for a value that occurs in the rows of many orchestrations.
func (r *statusColumns) name(names columnNames, name, value string) {
	if known, ok := names[value]; ok {
		r.columns[name] = known
		return
	}
	r.text(name, value)
}

// columnNames holds the values that the columns of many rows share: each of them takes memory once instead of per row.
// They are immutable.
type columnNames map[string]any

func newColumnNames(c Config) columnNames {
	names := columnNames{}
	for _, status := range []Status{Pending, Running, Suspended, Retrying, Stalled, Completed, Failed, Terminated, Canceled} {
		names[string(status)] = string(status)
	}
	for _, kind := range []CallKind{ActivityCall, OrchestrationCall, TimerCall, EventCall} {
		names[string(kind)] = string(kind)
	}
	for _, o := range c.Orchestrators {
		names[o.Name()] = o.Name()
	}
	names[c.Node] = c.Node
	return names
}

func (r *statusColumns) number(name string, value int64) { setColumn(r, name, value) }

// flag sets a column to true, or removes it.
func (r *statusColumns) flag(name string, value bool) {
	if value {
		r.columns[name] = true
		return
	}
	delete(r.columns, name)
}

// time sets a column to a time in microseconds; 0 removes it.
func (r *statusColumns) time(name string, micros int64) {
	if micros == 0 {
		delete(r.columns, name)
		return
	}
	setColumn(r, name, fromMicros(micros))
}

// setColumn sets a column unless it has the value.
func setColumn[T comparable](r *statusColumns, name string, value T) {
	if old, ok := r.columns[name].(T); !ok || old != value {
		r.columns[name] = value
	}
}
