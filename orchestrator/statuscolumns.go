package orchestrator

import "time"

// statusColumns holds the columns of an execution's status row from round to round, because the commit of a round is what
// everything waits for: a column that has not changed is not made again. It relies on stores that do not keep what they
// are given.
type statusColumns struct {
	of        *execution // whose row it is; nil before the first round
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
