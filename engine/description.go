package engine

import "encoding/json"

// Description says what an engine consists of, for tools and for people. The API returns it as JSON.
type Description struct {
	Name  string `json:"name"`
	Queue string `json:"queue"`
	// Function listens to the queue.
	Function   string   `json:"function"`
	Operations []string `json:"operations"`
	// Version is the version that new runs begin with, and Versions are the others that runs may go on with; "" is a
	// version without a name.
	Version  string   `json:"version"`
	Versions []string `json:"versions,omitempty"`
	// Children are the names of the orchestrators that it calls.
	Children  []string              `json:"children,omitempty"`
	Schedules []ScheduleDescription `json:"schedules,omitempty"`
	Intakes   []RouteDescription    `json:"intakes,omitempty"`
	Endpoints []RouteDescription    `json:"endpoints,omitempty"`
	Tables    []string              `json:"tables,omitempty"`
	Singleton Scope                 `json:"singleton,omitempty"`
	// MaxAttempts is the number of the delivery that becomes a dead letter without running.
	MaxAttempts int `json:"maxAttempts"`
	// Timeout bounds each attempt, as a Go duration; "" sets no bound.
	Timeout string `json:"timeout,omitempty"`
	// Keep is how long history and resolved dead letters are kept, as a Go duration.
	Keep string `json:"keep"`
	// Example is a message that the engine takes.
	Example *Message `json:"example,omitempty"`
	// InputSchema is a JSON schema of the input of its messages.
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// ScheduleDescription says when messages are sent to an engine, unless a setting says otherwise.
type ScheduleDescription struct {
	// Name is "" for a schedule without one.
	Name string `json:"name"`
	Cron string `json:"cron"`
}

// RouteDescription says at which route a function answers HTTP requests: /api/{route}.
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
