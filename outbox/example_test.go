package outbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/tables"
)

// printer is a destination that prints its events.
type printer struct{}

// Deliver prints an event.
func (printer) Deliver(_ context.Context, e outbox.Event) error {
	fmt.Println(e.TenantID, e.Type, string(e.Payload))
	return nil
}

// An event that is added twice under one key leaves once.
func Example() {
	ctx := context.Background()
	o, err := outbox.New(outbox.Config{Tables: tables.NewMemory(), Queues: queues.NewMemory(), Blobs: blobs.NewMemory(), Options: outbox.DefaultOptions()})
	if err == nil {
		err = o.Create(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	writer := outbox.NewWriter(o)
	for range 2 {
		added, err := writer.Add(ctx, outbox.Message{TenantID: "acme", EventType: "order.shipped", Payload: []byte(`{"order":7}`),
			Key: writer.Key("acme", "order", "7", "shipped", "1")})
		fmt.Println(added.AlreadyExisted, err)
	}
	router, err := outbox.NewRouter([]outbox.Route{{EventType: "order.*", Destination: "printer"}}, outbox.Destinations{"printer": printer{}})
	if err != nil {
		log.Fatal(err)
	}
	dispatcher, err := outbox.NewDispatcher(o, outbox.DispatcherConfig{Router: router})
	if err != nil {
		log.Fatal(err)
	}
	result, err := dispatcher.Sweep(ctx)
	fmt.Println(result.Delivered, err)
	// Output:
	// false <nil>
	// true <nil>
	// acme order.shipped {"order":7}
	// 1 <nil>
}
