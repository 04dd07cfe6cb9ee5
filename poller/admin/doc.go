// Package admin is the operators' view of the pollers of an app: their states in both stores, their definitions in the
// settings, their lag behind the source, and the changes of package poller's Operator.
//
// Reading states needs no database: only Lag, Explain and Plan query it, and AcceptFingerprint opens a source without
// connecting. The package owns no storage keys; those that it changes are package poller's.
package admin
