// Package metrics counts the work of the program and exports it to Prometheus, from a registry of its own.
//
// All names begin with roundhouse_. Counters and histograms are of this process: add them up over processes. Values
// of storage are the same for all processes, so only the one with the collector's lease reads and exports them, with
// roundhouse_collector_leader: they need no sum, and are read once. No label holds a tenant, an instance or an id:
// engines, activities, functions, routes, destinations, queues and pollers are those of the program and its
// configuration, and all others count as other. docs/observability.md has all metrics.
//
// A duration has the trace of its context as an exemplar, if it is sampled.
//
// The package owns no storage keys. Its storage requests run in goroutines that end with their timeout.
package metrics
