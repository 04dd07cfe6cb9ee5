// Package metrics counts what the program does and shows it to Prometheus, from a registry of its own.
//
// All names begin with roundhouse_. Counters and histograms are of this process: add them up over processes. What
// storage holds is the same for all processes, so only the one with the collector's lease asks for it and shows it, beside
// roundhouse_collector_leader: there is nothing to add up, and nothing is asked twice. No label holds a tenant, an instance
// or an id; destinations, results and pollers are few and come from the configuration, and
// orchestrators are those of the program.
//
// The package owns no storage keys and starts no goroutine.
package metrics
