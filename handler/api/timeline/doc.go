// Package timeline tells what happened under one correlation id, over all engines: messages, runs with their calls, timers,
// events and people's tasks, published events with their deliveries, what people did to runs, dead letters and what became of them.
//
// What it promises:
//   - Everything is derived from what is durable: the history, the dead letters, the rounds of the runs, the rows of their tasks,
//     and those of the outbox and of the audit log. Each thing that these record is one [Item], whose ID is the same whenever it is read.
//   - Items are ordered by time, and by their IDs where they share one, so a page goes on behind an item, whatever was written or
//     purged meanwhile.
//   - A tenant sees what belongs to it. Nothing else shows that there is more.
//   - What a page reads is bounded (maxReads requests), from indexes. What is left out because of that, or because it cannot be
//     read, makes the page Truncated, and damage has an item of its own.
//
// Runs are found by the list of orchestrations, by their ids, and by the instances that the history and the dead letters name, and
// from those on by the calls in their rounds. Events are found by the keys that the rounds name: events that something else has
// added to the outbox are not. It owns no storage keys and writes nothing.
package timeline
