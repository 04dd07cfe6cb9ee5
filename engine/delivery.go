package engine

import (
	"errors"
	"time"
)

// ErrDrained is in the cause of a context that ends because the app drains for an update. Runs park, without using up
// an attempt.
var ErrDrained = errors.New("the app is drained for an update")

// Delivery is one delivery of one queue message, in the form in which any host hands it over.
type Delivery struct {
	// Queue is the name of the queue it came from.
	Queue string
	// ID is the message id that storage gave.
	ID string
	// PopReceipt is the pop receipt of the delivery; "" when the host does not report it. The host's renewals make it
	// invalid.
	PopReceipt string
	// Body is the message as its sender sent it.
	Body []byte
	// DequeueCount is the number of deliveries of the message, this one included; at least 1.
	DequeueCount int
	// InsertedAt is when the message entered the queue (second precision); zero when the host does not report it.
	InsertedAt time.Time
}
