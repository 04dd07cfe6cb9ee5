// Package pollers holds the drill of pollers: nodes, which are processes of the test binary, run one poller over
// Azurite and PostgreSQL, while its owner is suspended beyond its lease, or killed (checkpoint document, section 11).
package pollers
