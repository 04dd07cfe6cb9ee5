package engine

import "time"

// Delivery is one delivery of one queue message, as any host hands it over.
type Delivery struct {
	// Queue is the name of the queue it came from.
	Queue string
	// ID is the message id that storage gave.
	ID string
	// Body is the message as its sender meant it.
	Body []byte
	// DequeueCount says how often storage has handed the message out, this delivery included; at least 1.
	DequeueCount int
	// InsertedAt is when the message entered the queue (second precision); zero when the host does not tell.
	InsertedAt time.Time
}
