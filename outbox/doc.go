// Package outbox delivers events to the outside world: events are stored beside their cause, and delivered from there.
//
// It promises delivery at least once. A message for which Writer.Add has returned without error is delivered, however often
// processes crash, or it ends as dead or skipped, where a person finds it. For each tenant and idempotency key there is one
// message: adding it again finds the first one. A message is delivered again only if a delivery was not settled, and then
// with the same key. Nothing is promised about order, except for messages with one OrderKey: these are delivered one after
// another in the order in which they were added, as long as none of them becomes dead and is retried.
//
// It owns one table ("outbox"), one queue ("outbox-wake") and one blob container ("outbox", payloads of more than
// 48 KiB). A tenant is a partition of the table; its key is the tenant's id, escaped. The rows of a partition:
//
//	m-{id}                          the message; the id of a new one is its idempotency key, so that the insert is the
//	                                unique index UX_Outbox_Tenant_IdempotencyKey
//	o-{since}-{id}                  its dead letter does not show yet what has become of it
//	p-{due}-{id}-{nonce}            pending, and due at that time: the index IDX_Outbox_Unprocessed
//	w-{order key}-{sequence}-{id}   pending, and waiting for others of its order key
//	f-{created}-{id}                pending, and failed before
//	x-{processed}-{id}              processed or skipped, newest first
//	d-{died}-{id}                   dead, newest first
//	k-{order key}                   the next sequence of an order key that has a row under p-
//	n-{nonce}                       a process may add p-, w- and o- rows
//
// The partition "~tenants" has one row for each tenant, and "~open" one for each that may have p-, w- or o- rows; sweeps read the
// latter. Rows that belong together change in one transaction. A claim replaces the
// p- row of a message by one that is due when the claim ends, under a name that nobody else knows. The settlement deletes the row
// of that name, which fails if the claim was lost. A process that delivers what it adds (Dispatcher.Writer) inserts the p- row
// already claimed.
package outbox
