// Package recovery holds the recovery drill. Nodes, which are processes of the test binary, work on orchestrations that
// wait for timers and events, over their own Azurite, while processes are killed, Azurite is stopped, and queues are
// emptied (persistence document, section 11). docs/recovery.md has the measurements.
package recovery
