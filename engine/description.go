package engine

import "encoding/json"

// Description describes the parts of an engine, for tools and operators. The API returns it as JSON.
type Description struct {
	Name  string `json:"name"`
	Queue string `json:"queue"`
	// Function listens to the queue.
	Function   string   `json:"function"`
	Operations []string `json:"operations"`
	// Version is the version that new runs begin with, and Versions are the others that runs may continue with; "" is
	// a version without a name.
	Version  string   `json:"version"`
	Versions []string `json:"versions,omitempty"`
	// Children are the names of the orchestrators that it calls.
	Children  []string              `json:"children,omitempty"`
	Schedules []ScheduleDescription `json:"schedules,omitempty"`
	Intakes   []RouteDescription    `json:"intakes,omitempty"`
	Endpoints []RouteDescription    `json:"endpoints,omitempty"`
	Tables    []string              `json:"tables,omitempty"`
	Singleton Scope                 `json:"singleton,omitempty"`
	// MaxAttempts is the number of the delivery that is dead-lettered without running.
	MaxAttempts int `json:"maxAttempts"`
	// Timeout bounds each attempt, as a Go duration; "" sets no bound.
	Timeout string `json:"timeout,omitempty"`
	// Keep is the retention time of history and resolved dead letters, as a Go duration.
	Keep string `json:"keep"`
	// Example is an example message of the engine.
	Example *Message `json:"example,omitempty"`
	// InputSchema is a JSON schema of the input of its messages.
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// ScheduleDescription describes when messages are sent to an engine, unless a setting overrides it.
type ScheduleDescription struct {
	// Name is "" for a schedule without one.
	Name string `json:"name"`
	Cron string `json:"cron"`
}

// RouteDescription is the route of a function for HTTP requests: /api/{route}.
type RouteDescription struct {
	Function string `json:"function"`
	Route    string `json:"route"`
}

// Describe describes the engine.
func (d Definition) Describe() Description {
	d = d.withDefaults()
	description := Description{Name: d.Name, Queue: d.Queue, Function: d.QueueFunction(), Tables: d.Tables,
		Version: d.Orchestrator.Version(), Singleton: d.Singleton, MaxAttempts: d.MaxAttempts, Keep: d.Keep.String(), Example: d.Example, InputSchema: d.InputSchema}
	if d.Timeout > 0 {
		description.Timeout = d.Timeout.String()
	}
	for _, o := range d.Operations {
		description.Operations = append(description.Operations, d.operationName(o.Name()))
	}
	for _, v := range d.Versions {
		description.Versions = append(description.Versions, v.Version())
	}
	for _, c := range d.Children {
		description.Children = append(description.Children, c.Name())
	}
	for _, s := range d.Schedules {
		description.Schedules = append(description.Schedules, ScheduleDescription{s.Name, s.Cron})
	}
	for _, i := range d.Intakes {
		description.Intakes = append(description.Intakes, RouteDescription{i.Function, i.Route})
	}
	for _, e := range d.Endpoints {
		description.Endpoints = append(description.Endpoints, RouteDescription{e.Function, e.Route})
	}
	return description
}
