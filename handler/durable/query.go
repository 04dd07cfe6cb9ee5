package durable

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
)

// query reads parameters like the extension: names in any case, and invalid values are ignored.
type query url.Values

func (q query) values(name string) []string {
	var all []string
	for key, values := range q {
		if strings.EqualFold(key, name) {
			all = append(all, values...)
		}
	}
	return all
}

func (q query) text(name string) string { return strings.Join(q.values(name), ",") }

// flag reads true or false.
func (q query) flag(name string, otherwise bool) bool {
	switch value := strings.TrimSpace(q.text(name)); {
	case strings.EqualFold(value, "true"):
		return true
	case strings.EqualFold(value, "false"):
		return false
	default:
		return otherwise
	}
}

func (q query) number(name string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(q.text(name)))
	return n, err == nil
}

// maxSeconds bounds a time in seconds: a day.
const maxSeconds = 86_400

// seconds reads a time in seconds.
func (q query) seconds(name string) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(q.text(name)), 64)
	if err != nil || math.IsNaN(n) {
		return 0, false
	}
	return time.Duration(min(max(n, -maxSeconds), maxSeconds) * float64(time.Second)), true
}

// earliest is the first time that tables can store.
var earliest = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)

// when reads a time; without an offset it is UTC. An unencoded + of an offset arrives as a blank.
func (q query) when(name string) (time.Time, bool) {
	value := strings.TrimSpace(q.text(name))
	for _, text := range []string{value, strings.ReplaceAll(value, " ", "+")} {
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly, "01/02/2006 15:04:05", "01/02/2006"} {
			t, err := time.Parse(layout, text)
			if y := t.Year(); err == nil && y >= 1 && y <= 9999 {
				if t = t.UTC(); t.Before(earliest) {
					return earliest, true // clients send their smallest date for "since ever"
				}
				return t, true
			}
		}
	}
	return time.Time{}, false
}

// statuses reads runtimeStatus. all is false if one does not exist.
func (q query) statuses() (known []orchestrator.Status, all bool) {
	all = true
	for _, value := range q.values("runtimeStatus") {
		for name := range strings.SplitSeq(value, ",") {
			status, ok := statusOf(strings.TrimSpace(name))
			if !ok {
				all = false
				continue
			}
			known = append(known, status)
			if status == orchestrator.Running {
				known = append(known, orchestrator.Retrying, orchestrator.Stalled) // which are shown as Running
			}
		}
	}
	return known, all
}

// statusOf converts a status of the extension. An instance that has continued as new is running.
func statusOf(name string) (orchestrator.Status, bool) {
	for _, s := range []orchestrator.Status{orchestrator.Pending, orchestrator.Running, orchestrator.Suspended, orchestrator.Completed,
		orchestrator.Failed, orchestrator.Terminated, orchestrator.Canceled} {
		if string(s) == name {
			return s, true
		}
	}
	return orchestrator.Running, name == "ContinuedAsNew"
}
