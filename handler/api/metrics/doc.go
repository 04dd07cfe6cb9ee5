// Package metrics counts what the program does and shows it to Prometheus, from a registry of its own.
//
// All names begin with roundhouse_. Counters and histograms are of this process: add them up over processes. What
// storage holds is the same for all processes, so only the one with the collector's lease asks for it and shows it, beside
// roundhouse_collector_leader: there is nothing to add up, and nothing is asked twice. No label holds a tenant, an instance
// or an id: engines, activities, functions, routes, destinations, queues and pollers are those of the program and its configuration, and
// what is none of them counts as other. docs/observability.md has all metrics.
//
// A duration has the trace of its context as an exemplar, when there is one that is sampled.
//
// The package owns no storage keys. What it asks storage for runs in goroutines that end with its time-out.
package metrics
