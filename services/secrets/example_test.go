package secrets_test

import (
	"context"
	"fmt"
	"log"

	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// A caller that adds a version names its work in a tag. Adding is not idempotent, so after a lost answer, the tag shows
// whether the version exists. This is the store of a developer's machine; NewKeyVault makes the one of Azure.
func Example() {
	ctx := context.Background()
	store := tables.NewMemory()
	if err := store.CreateTable(ctx, secrets.DevelopmentTable); err != nil {
		log.Fatal(err)
	}
	vault := secrets.NewDevelopment(store)
	name := secrets.Name("hmac", "instance-7")

	for range 2 {
		if err := addOnce(ctx, vault, name, "rotation-1"); err != nil {
			log.Fatal(err)
		}
	}
	versions, err := vault.Versions(ctx, name)
	fmt.Println(name, len(versions), err)
	// Output: hmac-instance-7 1 <nil>
}

// addOnce adds a version for a job, unless it exists.
func addOnce(ctx context.Context, vault secrets.Store, name, job string) error {
	versions, err := vault.Versions(ctx, name)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if v.Tags["job"] == job {
			return nil
		}
	}
	_, err = vault.Add(ctx, name, []byte("a new key"), map[string]string{"job": job})
	return err
}
