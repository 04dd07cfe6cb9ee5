package engine

import "time"

// Delivery is one delivery of one queue message, in the form in which any host hands it over.
type Delivery struct {
	// Queue is the name of the queue it came from.
	Queue string
	// ID is the message id that storage gave.
	ID string
	// Body is the message as its sender sent it.
	Body []byte
	// DequeueCount is how often storage has delivered the message, this delivery included; at least 1.
	DequeueCount int
	// InsertedAt is when the message entered the queue (second precision); zero when the host does not say.
	InsertedAt time.Time
}
