package orchestrator

import (
	"cmp"
	"encoding/json"
	"strconv"
)

// appendRound appends a round in the format of encoding/json; with an error, the result is only good as a buffer.
// Every step writes a round, and most events have only the few fields of calls and results. So these fields are
// written here, and rare ones by encoding/json.
func appendRound(b []byte, r round) ([]byte, error) {
	w := eventWriter{text: append(b, '{')}
	w.events("learned", r.Learned)
	w.events("decided", r.Decided)
	w.flag("more", r.More)
	return append(w.text, '}'), w.err
}

// eventWriter appends JSON. After an error it does nothing.
type eventWriter struct {
	text []byte
	err  error
}

// key appends the name of a field, after a comma unless it is the first.
func (w *eventWriter) key(name string) {
	if w.text[len(w.text)-1] != '{' {
		w.text = append(w.text, ',')
	}
	w.text = append(append(append(w.text, '"'), name...), '"', ':')
}

func (w *eventWriter) events(name string, events []event) {
	if len(events) == 0 {
		return
	}
	w.key(name)
	for i := range events {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		w.text = append(w.text, sep)
		w.event(&events[i])
	}
	w.text = append(w.text, ']')
}

// event appends an event, with the fields in the order of storedEvent.
func (w *eventWriter) event(e *event) {
	if e.Failure != nil || e.Inherited != nil || e.Origin != nil || e.Start != nil && !e.Start.plain() {
		w.other(e.stored())
		return
	}
	w.text = append(w.text, '{')
	w.key("kind")
	w.quoted(string(e.Kind))
	w.key("at")
	w.text = strconv.AppendInt(w.text, e.At, 10)
	w.number("task", int64(e.Task))
	w.string("name", e.Name)
	w.payload(e.Payload)
	w.string("blob", e.Blob)
	w.number("attempt", int64(e.Attempt))
	w.number("due", e.Due)
	start, to, by := e.Start, e.Target, e.Signal
	if start == nil {
		start = &startDetails{}
	}
	if to == nil {
		to = &target{}
	}
	if by == nil {
		by = &signalDetails{}
	}
	w.start(start)
	w.flag("retrying", e.Retrying)
	w.flag("keeps", e.Keeps)
	w.number("undoes", int64(to.Undoes))
	w.flag("local", to.Local)
	w.flag("shielded", e.Shielded)
	w.string("close", string(to.Close))
	w.number("accepted", by.Accepted)
	w.string("stream", by.Stream)
	w.number("sequence", int64(by.Sequence))
	w.number("previous", by.Previous)
	w.flag("overtakes", by.Overtakes)
	if len(to.Tasks) > 0 {
		w.key("tasks")
		w.other(to.Tasks)
	}
	w.string("child", to.Child)
	w.string("parent", start.Parent)
	w.string("tenant", cmp.Or(start.Tenant, to.Tenant))
	w.string("order", to.Order)
	w.number("timeout", start.Timeout)
	w.string("signal", by.ID)
	w.string("reason", by.Reason)
	w.string("trace", cmp.Or(start.Trace, by.Trace))
	w.text = append(w.text, '}')
}

// start appends the fields of a plain start that follow each other.
func (w *eventWriter) start(s *startDetails) {
	w.string("correlationId", s.CorrelationID)
	w.number("base", int64(s.Base))
	w.number("first", int64(s.First))
	w.flag("series", s.Series)
	w.number("before", int64(s.Before))
	w.number("created", s.Created)
	w.string("version", s.Version)
	w.flag("held", s.Held)
	w.flag("drop", s.Drop)
	w.number("rules", int64(s.Rules))
	w.flag("publishes", s.Publishes)
	w.flag("signals", s.Signals)
	w.flag("willRetry", s.WillRetry)
	w.flag("revived", s.Revived)
}

// plain reports whether the start has none of the details that encoding/json writes.
func (s *startDetails) plain() bool {
	return s.Reference == nil && s.Call == nil && len(s.Errors) == 0 && len(s.Carry) == 0
}

func (w *eventWriter) number(name string, n int64) {
	if n != 0 {
		w.key(name)
		w.text = strconv.AppendInt(w.text, n, 10)
	}
}

func (w *eventWriter) flag(name string, on bool) {
	if on {
		w.key(name)
		w.text = append(w.text, "true"...)
	}
}

func (w *eventWriter) string(name, s string) {
	if s != "" {
		w.key(name)
		w.quoted(s)
	}
}

// quoted appends a string, by encoding/json if it needs escapes.
func (w *eventWriter) quoted(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			w.other(s)
			return
		}
	}
	w.text = append(append(append(w.text, '"'), s...), '"')
}

// payload appends a JSON payload, without white space between its tokens.
func (w *eventWriter) payload(text []byte) {
	if len(text) == 0 {
		return
	}
	w.key("payload")
	if end, ok := jsonEnd(text, 0); ok && end == len(text) {
		w.text = append(w.text, text...)
		return
	}
	w.other(json.RawMessage(text))
}

// other appends a value by encoding/json.
func (w *eventWriter) other(v any) {
	text, err := marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.text = append(w.text, text...)
}
