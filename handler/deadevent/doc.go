// Package deadevent connects the outbox and the dead letters: an event that needs an operator has one pending dead
// letter of the engine "outbox", and a decision about either changes both.
//
// After any decision, through any entry point, and any crash in between, the dead letter reaches the state of the
// event: that state is written with the event, and package outbox repeats the update until it succeeds. An event that
// dies again has another dead letter, with the previous one as its parent.
//
// It owns no storage keys: the rows are those of the packages engine and outbox.
package deadevent
