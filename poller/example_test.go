package poller_test

import (
	"context"
	"fmt"
	"log"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/poller"
	"github.com/vibedata/roundhouse/poller/pollertest"
)

// A tick reads the new rows, delivers them, and stores its position. Package sqlsource has sources in databases.
func Example() {
	ctx := context.Background()
	store := poller.BlobStore{Blobs: blobs.NewMemory()}
	if err := store.Create(ctx); err != nil {
		log.Fatal(err)
	}
	source := &pollertest.Source{}
	runner, err := poller.NewRunner(poller.RunnerConfig{Name: "orders", Source: source, Store: store,
		Handler: poller.HandlerFunc(func(_ context.Context, d poller.Delivery) error {
			fmt.Println("rows up to", d.Rows[len(d.Rows)-1].Cursor.Value)
			return nil
		})})
	if err != nil {
		log.Fatal(err)
	}
	for _, more := range []int{3, 2, 0} {
		source.Append(more)
		result, err := runner.Tick(ctx)
		fmt.Println(result.Rows, result.Drained, err)
	}
	// Output:
	// rows up to 3
	// 3 true <nil>
	// rows up to 5
	// 2 true <nil>
	// 0 true <nil>
}
