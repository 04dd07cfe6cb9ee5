package azure_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/worker"
)

// The emulator's account prints without its key.
func Example() {
	account, err := azure.FromConnectionString("UseDevelopmentStorage=true")
	if err != nil {
		log.Fatal(err)
	}
	store, err := azure.NewTables(account) // sends no request yet
	fmt.Println(account.Name, account.TableEndpoint, account.Emulator, store != nil, err)
	_, err = azure.FromConnectionString("AccountName=acct1;AccountKey=not base64!")
	fmt.Println(err)
	// Output:
	// devstoreaccount1 http://127.0.0.1:10002/devstoreaccount1 true true <nil>
	// AccountKey is missing or not base64: set a key as the account shows it
}

// A worker uses the storage account of its environment, as the Functions host reads it: a connection string in
// AzureWebJobsStorage, or an identity and AzureWebJobsStorage__accountName.
func Example_worker() {
	account, err := azure.FromEnvironment(os.LookupEnv, "AzureWebJobsStorage")
	if err != nil {
		log.Fatal(err)
	}
	tables, err1 := azure.NewTables(account)
	queues, err2 := azure.NewQueues(account)
	blobs, err3 := azure.NewBlobs(account)
	if err := errors.Join(err1, err2, err3); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	w, err := worker.New(ctx, worker.Config{Runtime: orchestrator.Config{Tables: tables, Queues: queues, Blobs: blobs}})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(w.Run(ctx))
}
