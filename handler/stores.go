package main

import (
	"context"
	"errors"

	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/certificates"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/registry"
	"github.com/vibedata/roundhouse/secrets"
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
	t, tablesErr := tables.NewAzure(s.Storage)
	q, queuesErr := queues.NewAzure(s.Storage)
	b, blobsErr := blobs.NewAzure(s.Storage)
	if err := errors.Join(tablesErr, queuesErr, blobsErr); err != nil {
		return stores{}, err
	}
	st := stores{tables: t, queues: q, blobs: b, registry: registry.New(t, ""), prepareVault: func(context.Context) error { return nil }}
	if s.KeyVaultURL == "" {
		// LoadSettings lets this happen with the emulator only.
		st.vault, st.certificates = secrets.NewDevelopment(t), certificates.NewDevelopment(t)
		st.prepareVault = func(ctx context.Context) error {
			return errors.Join(t.CreateTable(ctx, secrets.DevelopmentTable), t.CreateTable(ctx, certificates.DevelopmentTable))
		}
		return st, nil
	}
	credential, err := s.Storage.Identity()
	if err != nil {
		return stores{}, err
	}
	kept, secretsErr := secrets.NewKeyVault(s.KeyVaultURL, credential, nil)
	issued, certificatesErr := certificates.NewKeyVault(s.KeyVaultURL, credential, nil)
	st.vault, st.certificates = kept, issued
	return st, errors.Join(secretsErr, certificatesErr)
}
