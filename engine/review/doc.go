// Package review asks a person what is to become of each new dead letter: a human task, whose answer retries, resolves or
// expires it.
//
// It promises that a dead letter whose review cannot be started is not written: its message comes again, and both are. A
// review does nothing to a dead letter that somebody has decided on otherwise; its task is canceled by then, at the
// latest a day later.
//
// It owns the orchestrations whose ids begin with "review-", and no other keys.
package review
