package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/vibedata/roundhouse/blobs"
)

// PutIf replaces only the version that its caller has read.
func Example() {
	ctx := context.Background()
	store := blobs.NewMemory() // or azure.NewBlobs
	if err := store.CreateContainer(ctx, "documents"); err != nil {
		log.Fatal(err)
	}
	if err := store.Put(ctx, "documents", "a/plan", []byte("first")); err != nil {
		log.Fatal(err)
	}
	var response blobs.Response
	data, err := store.Get(blobs.WithCaptureResponse(ctx, &response), "documents", "a/plan")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(store.PutIf(ctx, "documents", "a/plan", append(data, " and second"...), response.ETag()))
	err = store.PutIf(ctx, "documents", "a/plan", []byte("third"), response.ETag())
	fmt.Println("changed since:", errors.Is(err, blobs.ErrPrecondition))
	for name, err := range blobs.All(ctx, store, "documents", "a/") {
		fmt.Println(name, err)
	}
	// Output:
	// <nil>
	// changed since: true
	// a/plan <nil>
}
