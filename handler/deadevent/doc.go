// Package deadevent is what the outbox and the dead letters have to do with each other: an event that needs a person has one
// pending dead letter of the engine "outbox", and a decision about either is one about both.
//
// It promises that, whatever is decided through whichever door, and wherever a process dies in between, the dead letter comes
// to show what became of the event: that is written with the event, and package outbox repeats it until it is shown. An event
// that dies again has another dead letter, with the one before as its parent.
//
// It owns no storage keys: the rows are those of the packages engine and outbox.
package deadevent
