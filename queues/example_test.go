package queues_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/vibedata/roundhouse/queues"
)

// A message exists until it is deleted: a consumer that dies before that leaves it to the next consumer.
func Example() {
	ctx := context.Background()
	store := queues.NewMemory() // or azure.NewQueues
	if err := store.CreateQueue(ctx, "work"); err != nil {
		log.Fatal(err)
	}
	if _, err := store.Send(ctx, "work", []byte("one"), 0); err != nil {
		log.Fatal(err)
	}
	messages, err := store.Receive(ctx, "work", queues.MaxReceive, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range messages {
		fmt.Printf("%s, received for the %d. time\n", queues.Decode(m.Text), m.DequeueCount)
		if err := store.Delete(ctx, "work", m.ID, m.PopReceipt); err != nil {
			log.Fatal(err)
		}
	}
	_, err = store.Send(ctx, "work", make([]byte, queues.MaxBody+1), 0)
	fmt.Println("as in Azure:", errors.Is(err, queues.ErrTooLarge))
	// Output:
	// one, received for the 1. time
	// as in Azure: true
}
