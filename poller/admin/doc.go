// Package admin is what operators see of the pollers of an app, and do to them: the states of all, wherever they are kept, what the
// settings define, how far a poller is behind its source, and the changes of package poller's Operator.
//
// It promises that looking at states asks no database: Lag, Explain and Plan do, and AcceptFingerprint opens a source without connecting. It owns no
// storage keys; those that it changes are package poller's.
package admin
