package main

import (
	"context"
	"errors"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// stores are the services that the program keeps its state in.
type stores struct {
	tables tables.Store
	queues queues.Store
	blobs  blobs.Store
	// vault keeps secrets, and gives their values to those who use them themselves.
	vault        vault
	certificates certificates.Store
	registry     *registry.Registry
	// prepareVault creates what the secret and certificate stores need.
	prepareVault func(context.Context) error
}

// vault is a secret store that gives out values, too.
type vault interface {
	secrets.Store
	secrets.Reader
}

func openStores(s Settings) (stores, error) {
	t, tablesErr := azure.NewTables(s.Storage)
	q, queuesErr := azure.NewQueues(s.Storage)
	b, blobsErr := azure.NewBlobs(s.Storage)
	if err := errors.Join(tablesErr, queuesErr, blobsErr); err != nil {
		return stores{}, err
	}
	if s.KeyVaultURL == "" { // LoadSettings lets this happen with the emulator only
		return developmentStores(t, q, b), nil
	}
	st := stores{tables: t, queues: q, blobs: b, registry: registry.New(t, ""), prepareVault: func(context.Context) error { return nil }}
	credential, err := s.Storage.Identity()
	if err != nil {
		return stores{}, err
	}
	kept, secretsErr := secrets.NewKeyVault(s.KeyVaultURL, credential, nil)
	issued, certificatesErr := certificates.NewKeyVault(s.KeyVaultURL, credential, nil)
	st.vault, st.certificates = kept, issued
	return st, errors.Join(secretsErr, certificatesErr)
}

// developmentStores keep secrets and certificates in tables.
func developmentStores(t tables.Store, q queues.Store, b blobs.Store) stores {
	return stores{tables: t, queues: q, blobs: b, registry: registry.New(t, ""), vault: secrets.NewDevelopment(t), certificates: certificates.NewDevelopment(t),
		prepareVault: func(ctx context.Context) error {
			return errors.Join(t.CreateTable(ctx, secrets.DevelopmentTable), t.CreateTable(ctx, certificates.DevelopmentTable))
		}}
}
