// Package recovery holds the recovery drill: nodes, which are processes of the test binary, work on orchestrations that
// wait for timers and events, over an Azurite of their own, while processes are killed, Azurite is stopped, and queues are
// emptied (persistence document, section 11). docs/recovery.md has what it measures.
package recovery
