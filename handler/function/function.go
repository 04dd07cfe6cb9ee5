// Package function describes the functions of an app for the Functions host: a function.json in a folder with the
// function's name.
//
// It has the one form in which this program serves a function: queue messages arrive as bytes, HTTP requests are
// forwarded unchanged. It owns no storage keys.
package function

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the trigger bindings, under which the host sends a function's input.
const (
	QueueParameter = "message"
	TimerParameter = "timer"
)

// Level is the authentication that the host requires from the caller of an HTTP function.
type Level string

// Anonymous requires nothing, Key a key of the function or of the host.
const (
	Anonymous Level = "anonymous"
	Key       Level = "function"
)

// storage is the setting of the queues' account.
const storage = "AzureWebJobsStorage"

// Function is a function: its name, and its bindings, of which the first is the trigger.
type Function struct {
	Name     string    `json:"-"`
	Bindings []Binding `json:"bindings"`
}

// Binding is a binding in function.json.
type Binding struct {
	Type       string   `json:"type"`
	Direction  string   `json:"direction"`
	Name       string   `json:"name"`
	QueueName  string   `json:"queueName,omitempty"`
	Connection string   `json:"connection,omitempty"`
	DataType   string   `json:"dataType,omitempty"`
	Schedule   string   `json:"schedule,omitempty"`
	UseMonitor *bool    `json:"useMonitor,omitempty"`
	AuthLevel  Level    `json:"authLevel,omitempty"`
	Methods    []string `json:"methods,omitempty"`
	Route      string   `json:"route,omitempty"`
}

// Queue returns a function that listens to a queue.
func Queue(name, queue string) Function {
	return Function{name, []Binding{{Type: "queueTrigger", Direction: "in", Name: QueueParameter, QueueName: queue, Connection: storage, DataType: "binary"}}}
}

// Timer returns a function that runs by an NCRONTAB expression of six fields, UTC.
func Timer(name, schedule string) Function {
	return Function{name, []Binding{{Type: "timerTrigger", Direction: "in", Name: TimerParameter, Schedule: schedule}}}
}

// Unmonitored returns a Timer without a status at the host: the host writes nothing when the function runs, and does
// not make up for missed occurrences.
func Unmonitored(name, schedule string) Function {
	f := Timer(name, schedule)
	f.Bindings[0].UseMonitor = new(bool)
	return f
}

// HTTP returns a function that is called at /api/{route}, with the methods given in lower case; with get, also with
// head. The host forwards a request unchanged only with these two bindings.
func HTTP(name, route string, level Level, methods ...string) Function {
	if slices.Contains(methods, "get") && !slices.Contains(methods, "head") {
		methods = append(slices.Clone(methods), "head")
	}
	return Function{name, []Binding{
		{Type: "httpTrigger", Direction: "in", Name: "req", AuthLevel: level, Methods: methods, Route: route},
		{Type: "http", Direction: "out", Name: "res"},
	}}
}

// JSON returns the function's function.json.
func (f Function) JSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(f)
	return text.Bytes(), err
}

// Write writes the function's folder in dir, with its function.json.
func (f Function) Write(dir string) error {
	text, err := f.JSON()
	folder := filepath.Join(dir, f.Name)
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "function.json"), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("lay out the function %s: %w", f.Name, err)
	}
	return nil
}

// Check returns the errors of an app's functions: two with one name, two that listen to one queue, of which each
// would get a part of the messages, or two with one route. A route with a rest of its path ("dlq/{*path}") covers all
// routes below it.
func Check(all []Function) error {
	var errs []error
	taken := map[string]string{} // key to the function's name
	take := func(what, name string) {
		if other, twice := taken[what]; twice {
			errs = append(errs, fmt.Errorf("%s belongs to two functions, %s and %s", what, other, name))
		}
		taken[what] = name
	}
	for _, f := range all {
		take("the name "+f.Name, f.Name)
		switch trigger := f.Bindings[0]; trigger.Type {
		case "queueTrigger":
			take("the queue "+trigger.QueueName, f.Name)
		case "httpTrigger":
			take("the route "+trigger.Route, f.Name)
		}
	}
	return errors.Join(append(errs, checkRests(all))...)
}

// checkRests finds routes below the rest of another route's path.
func checkRests(all []Function) error {
	var errs []error
	for _, wide := range all {
		above, ok := strings.CutSuffix(wide.Bindings[0].Route, "/{*path}")
		if !ok {
			continue
		}
		for _, f := range all {
			if route := f.Bindings[0].Route; f.Name != wide.Name && (route == above || strings.HasPrefix(route, above+"/")) {
				errs = append(errs, fmt.Errorf("the route %s of %s lies in %s, which belongs to %s", route, f.Name, wide.Bindings[0].Route, wide.Name))
			}
		}
	}
	return errors.Join(errs...)
}

// Sorted returns all, sorted by name.
func Sorted(all []Function) []Function {
	return slices.SortedFunc(slices.Values(all), func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
}
