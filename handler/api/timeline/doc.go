// Package timeline reads all events under one correlation id, over all engines: messages, runs with their calls,
// timers, events and human tasks, published events with their deliveries, users' actions on runs, dead letters and
// their outcomes.
//
// Promises:
//   - Everything is derived from durable data: the history, the dead letters, the rounds of the runs, the rows of their
//     tasks, and those of the outbox and of the audit log. Each recorded event is one [Item], whose ID is the same at
//     every read.
//   - Items are ordered by time, and by their IDs at the same time, so a page continues after an item despite
//     concurrent writes and purges.
//   - A tenant sees its own data. Nothing else shows that more exists.
//   - A page's reads are bounded (maxReads requests), from indexes. Omissions for that reason, or of unreadable data,
//     make the page Truncated, and damage has its own item.
//
// Runs are found by the list of orchestrations, by their ids, by the instances that the history and the dead letters
// name, and then by the calls in their rounds. Events are found by the keys that the rounds name: other producers'
// events in the outbox are not. The package owns no storage keys and writes nothing.
package timeline
