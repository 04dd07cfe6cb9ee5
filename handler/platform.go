package handler

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/registry"
	"github.com/vibedata/roundhouse/handler/preparation"
	"github.com/vibedata/roundhouse/handler/quota"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/outage"
	"github.com/vibedata/roundhouse/outbox"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/keys"
	"github.com/vibedata/roundhouse/services/outbound"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

// App is an app: its additions to the platform.
type App struct {
	// Engines makes the engines of the app from the platform. It does not use the network, because the command
	// manifest calls it, too, on machines without one. Its error, and those of the settings that it has read, are
	// reported together.
	Engines func(p *Platform) ([]engine.Definition, error)
}

// Platform holds the parts for an app's engines.
type Platform struct {
	// Settings reads the settings of the engines. An orchestrator must not decide by a setting directly: a run whose
	// setting changed would stall. Read it in an activity, or in orchestrator.SideEffect, which records it.
	Settings *settings.Reader
	// Tables, Queues and Blobs are the app's storage account.
	Tables tables.Store
	Queues queues.Store
	Blobs  blobs.Store
	// Secrets and Certificates are those of the key vault (ROUNDHOUSE_KEY_VAULT_URL); with the emulator, tables
	// replace it.
	Secrets      Secrets
	Certificates certificates.Store
	// Outbound makes the clients of outgoing calls, with the app's identity, signatures or client certificates.
	Outbound *outbound.Clients
	// VaultURL is the address of the key vault, "" with the emulator.
	VaultURL string
	// Registry is the registry of managed instances.
	Registry *registry.Registry
	// InstanceID is the instance of the app's own document in the registry, and TenantID its tenant: those of
	// ROUNDHOUSE_INSTANCE_ID and ROUNDHOUSE_TENANT_ID, or else engine.PublisherInstance. Engines may set another, and
	// "" for an app without a document of its own. The document is created when the app first starts
	// (docs/registry.md).
	InstanceID, TenantID string
	// WorksOnInstances means that the engines work on the instances of the registry, and are idle without one: health
	// and the log report when none exists. Engines set it.
	WorksOnInstances bool
	// Outbox adds events to the outbox. Orchestrators publish with Context.Publish instead.
	Outbox *outbox.Writer
	// Events reads the state of the events that the app has published.
	Events Events
	// Log receives the engines' own logs.
	Log *slog.Logger

	identity func() (azcore.TokenCredential, error)
	keys     codec.Keys // wrap the keys that payloads are encrypted with
	dial     dialer     // nil for the network
	keeper   *preparation.Keeper
}

// dialer makes connections.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Secrets is a secret store that also returns values.
type Secrets interface {
	secrets.Store
	secrets.Reader
}

// Identity returns the app's own identity in Microsoft Entra, for services that it calls.
func (p *Platform) Identity() (azcore.TokenCredential, error) { return p.identity() }

// openPlatform opens the stores of an app. It sends no request; prepare creates their storage.
func openPlatform(r *settings.Reader, s settings.Settings, log *slog.Logger) (p Platform, prepare func(context.Context) error, err error) {
	inTables, tablesErr := azure.NewTables(s.Storage)
	inQueues, queuesErr := azure.NewQueues(s.Storage)
	inBlobs, blobsErr := azure.NewBlobs(s.Storage)
	if err := errors.Join(tablesErr, queuesErr, blobsErr); err != nil {
		return Platform{}, nil, err
	}
	keeper := preparation.NewKeeper()
	t, q, b := kept(keeper, inTables, inQueues, inBlobs, log)
	if s.KeyVaultURL == "" { // settings.Load allows this with the emulator only
		if p, prepare, err = developmentPlatform(t, q, b, s.PayloadKey); err != nil {
			return Platform{}, nil, err
		}
	} else {
		p, prepare = Platform{Tables: t, Queues: q, Blobs: b}, func(context.Context) error { return nil }
		credential, err := s.Storage.Identity()
		if err != nil {
			return Platform{}, nil, err
		}
		kept, secretsErr := secrets.NewKeyVault(s.KeyVaultURL, credential, nil)
		issued, certificatesErr := certificates.NewKeyVault(s.KeyVaultURL, credential, nil)
		wrapping, keysErr := keys.NewKeyVault(s.KeyVaultURL, s.PayloadKey, credential, nil)
		if err := errors.Join(secretsErr, certificatesErr, keysErr); err != nil {
			return Platform{}, nil, err
		}
		p.Secrets, p.Certificates, p.keys = kept, issued, wrapping
	}
	p.Settings, p.VaultURL, p.Registry, p.Log, p.identity, p.keeper = r, s.KeyVaultURL, registry.New(t, ""), log, s.Storage.Identity, keeper
	p.Outbound, err = outbound.New(outbound.Config{Identity: p.identity, Vault: p.Secrets, Development: r.Development, Log: log})
	return p, prepare, err
}

// kept wraps the stores. Calls are charged to their requests. Invocations wait while the stores do not answer, and
// requests do not. Missing tables, queues and containers are created again.
func kept(k *preparation.Keeper, t tables.Store, q queues.Store, b blobs.Store, log *slog.Logger) (tables.Store, queues.Store, blobs.Store) {
	c := outage.Config{Log: log}
	return k.Tables(quota.Tables(outage.Tables(t, c))), k.Queues(quota.Queues(outage.Queues(q, c))), k.Blobs(quota.Blobs(outage.Blobs(b, c)))
}

// developmentPlatform keeps secrets, certificates and the key of payloads in tables.
func developmentPlatform(t tables.Store, q queues.Store, b blobs.Store, payloadKey string) (Platform, func(context.Context) error, error) {
	kept := secrets.NewDevelopment(t)
	wrapping, err := keys.NewDevelopment(kept, payloadKey)
	p := Platform{Tables: t, Queues: q, Blobs: b, Secrets: kept, Certificates: certificates.NewDevelopment(t), keys: wrapping}
	return p, func(ctx context.Context) error {
		return errors.Join(t.CreateTable(ctx, secrets.DevelopmentTable), t.CreateTable(ctx, certificates.DevelopmentTable))
	}, err
}

// over returns the platform over other stores, with secrets and certificates in tables, and the key of payloads
// there, too, unless wrapping is set.
func (p Platform) over(t tables.Store, q queues.Store, b blobs.Store, payloadKey string, wrapping codec.Keys) (other Platform, prepare func(context.Context) error, err error) {
	keeper := preparation.NewKeeper()
	t, q, b = kept(keeper, t, q, b, p.Log)
	if other, prepare, err = developmentPlatform(t, q, b, payloadKey); err != nil {
		return other, prepare, err
	}
	other.Settings, other.Registry, other.Log, other.identity, other.dial, other.keeper = p.Settings, registry.New(t, ""), p.Log, p.identity, p.dial, keeper
	if wrapping != nil {
		other.keys = wrapping
	}
	other.Outbound, err = outbound.New(outbound.Config{Identity: other.identity, Vault: other.Secrets, Development: p.Settings.Development, Dial: p.dial, Log: p.Log})
	return other, prepare, err
}
