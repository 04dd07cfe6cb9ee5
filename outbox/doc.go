// Package outbox tells the outside what happened: events are written beside their cause, and leave from there.
//
// It promises at least once. A message that Writer.Add has answered for is delivered, however often processes crash,
// or it ends as dead or skipped, where a person finds it. A (tenant, idempotency key) is there once: adding it again
// finds the message of the first time. A message is delivered again only if a delivery was not settled, and then under
// the same key. Nothing is promised about order, but for messages of one OrderKey, which leave one after another in the
// order in which they were added, for as long as none of them dies and is retried.
//
// It owns one table ("outbox"), one queue ("outbox-wake") and one blob container ("outbox", payloads of more than
// 48 KiB). A tenant is a partition of the table; its key is the tenant's id, escaped. The rows of a partition:
//
//	m-{id}                          the message; the id of a new one is its idempotency key, so that the insert is the
//	                                unique index UX_Outbox_Tenant_IdempotencyKey
//	p-{due}-{id}-{nonce}            pending, and due at that time: the index IDX_Outbox_Unprocessed
//	w-{order key}-{sequence}-{id}   pending, and waiting for others of its order key
//	f-{created}-{id}                pending, and failed before
//	x-{processed}-{id}              processed or skipped, newest first
//	d-{died}-{id}                   dead, newest first
//	k-{order key}                   the next sequence of an order key that has a row under p-
//
// The partition "~tenants" has one row a tenant. Rows that belong together change in one transaction. To claim a message
// is to replace its p- row by one that is due when the claim ends, under a name that nobody else knows: whoever settles
// deletes that name, and cannot when the claim was lost.
package outbox
