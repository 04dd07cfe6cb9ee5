package tables_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/vibedata/roundhouse/tables"
)

// Rows of one partition change together, and a key is inserted once.
func Example() {
	ctx := context.Background()
	store := tables.NewMemory() // or azure.NewTables
	if err := store.CreateTable(ctx, "orders"); err != nil {
		log.Fatal(err)
	}
	order := tables.Entity{Key: tables.Key{Partition: tables.EscapeKey("customer/7"), Row: "o-1"}, Properties: map[string]any{"Cents": int64(4200)}}
	line := tables.Entity{Key: tables.Key{Partition: order.Partition, Row: "o-1-line-1"}, Properties: map[string]any{"Item": "desk", "Cents": int64(4200)}}
	if err := store.Apply(ctx, "orders", tables.Insert(order), tables.Insert(line)); err != nil {
		log.Fatal(err)
	}
	err := store.Apply(ctx, "orders", tables.Insert(order))
	fmt.Println("again:", errors.Is(err, tables.ErrExists))
	for e, err := range tables.All(ctx, store, "orders", tables.Query{Partition: order.Partition}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Row, e.Int("Cents"))
	}
	// Output:
	// again: true
	// o-1 4200
	// o-1-line-1 4200
}

// Replace changes a row only if the row is unchanged since it was read.
func ExampleReplace() {
	ctx := context.Background()
	store := tables.NewMemory()
	key := tables.Key{Partition: "p", Row: "counter"}
	if err := errors.Join(store.CreateTable(ctx, "counters"), store.Apply(ctx, "counters", tables.Insert(tables.Entity{Key: key}))); err != nil {
		log.Fatal(err)
	}
	read, err := store.Get(ctx, "counters", key)
	if err != nil {
		log.Fatal(err)
	}
	read.Properties["Value"] = int64(1)
	fmt.Println(store.Apply(ctx, "counters", tables.Replace(read)))
	err = store.Apply(ctx, "counters", tables.Replace(read)) // the ETag is stale
	fmt.Println(errors.Is(err, tables.ErrPrecondition))
	// Output:
	// <nil>
	// true
}
