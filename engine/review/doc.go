// Package review creates a human task for each new dead letter, whose answer retries, resolves or expires it.
//
// A dead letter whose review cannot be started is not written: its message is redelivered, and both are created then.
// A review does not change a dead letter that was decided otherwise; its task is canceled at the latest a day later.
//
// It owns the orchestrations whose ids begin with "review-", and no other keys.
package review
