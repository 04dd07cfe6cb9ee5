// Package outbox delivers events to the outside world: an event is stored with its cause, and delivered from storage.
//
// Delivery is at least once. A message for which Writer.Add has returned without error is delivered despite crashes of
// processes, or it ends as dead or skipped, visible to operators. Each tenant and idempotency key has one message:
// adding it again finds the first one. A message is delivered again only if a delivery was not settled, and then with
// the same key. The order is undefined, except for messages with one OrderKey: these are delivered in the order of
// their addition, as long as none of them becomes dead and is retried.
//
// The package owns one table ("outbox"), one queue ("outbox-wake") and one blob container ("outbox", payloads of more
// than 48 KiB). A tenant is a partition of the table; its key is the tenant's id, escaped. The rows of a partition:
//
//	m-{id}                          the message; the id of a new one is its idempotency key, so that the insert is the
//	                                unique index UX_Outbox_Tenant_IdempotencyKey
//	o-{since}-{id}                  its dead letter does not show its outcome yet
//	p-{due}-{id}-{nonce}            pending, and due at that time: the index IDX_Outbox_Unprocessed
//	w-{order key}-{sequence}-{id}   pending, and waiting for others of its order key
//	f-{created}-{id}                pending, and failed before
//	x-{processed}-{id}              processed or skipped, newest first
//	d-{died}-{id}                   dead, newest first
//	k-{order key}                   the next sequence of an order key that has a row under p-
//	n-{nonce}                       a process may add p-, w- and o- rows
//
// The partition "~tenants" has one row for each tenant, and "~open" one for each that may have p-, w- or o- rows;
// sweeps read the latter. Related rows change in one transaction. A claim replaces the p- row of a message by a row
// that is due when the claim ends, under a name that no other process knows. The settlement deletes the row of that
// name, which fails if the claim was lost. A process that delivers its own messages (Dispatcher.Writer) inserts the p-
// row already claimed.
package outbox
