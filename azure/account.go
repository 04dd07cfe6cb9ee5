// Package azure runs Roundhouse on Azure Storage. It has the storage account (FromEnvironment, FromConnectionString,
// EmulatorAccount) and the adapters that make a tables.Store, a queues.Store and a blobs.Store of it (NewTables,
// NewQueues, NewBlobs). Only this package imports the storage SDK; programs in memory do without it.
//
// An Account holds the three endpoints, the credential, one connection pool and the retry policy. No error, log line or
// printed Account holds a key. The adapters check every request with the code of the packages that they implement.
// Every failure is one of those packages' errors; errors.As finds the SDK's own *azcore.ResponseError in it. The
// conformance suites tables/tablestest, queues/queuestest and blobs/blobstest hold the adapters to the behaviour of the
// stores in memory.
//
// The package owns no storage keys. It reads only the settings that FromEnvironment lists.
package azure

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// The emulator's account, which is the same everywhere and published by its vendor: not a secret.
const (
	emulatorName = "devstoreaccount1"
	emulatorKey  = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// The retry policy. An insert that is repeated after a lost answer finds its own entity.
const (
	maxRetries    = 3
	retryDelay    = 200 * time.Millisecond
	maxRetryDelay = 2 * time.Second
)

// How long an idle connection is kept. The emulator closes a connection after five idle seconds: drop it before that,
// or a request may meet the closing.
const (
	serviceIdle  = 90 * time.Second
	emulatorIdle = 4 * time.Second
)

// Account is a storage account: build it with FromEnvironment, FromConnectionString or EmulatorAccount. Copies share
// one connection pool.
type Account struct {
	// Name is the account's name; "" when only the endpoints are known.
	Name string
	// TableEndpoint, QueueEndpoint and BlobEndpoint are the services' URLs, without a slash at the end.
	TableEndpoint, QueueEndpoint, BlobEndpoint string
	// Credential authorizes requests without a shared key.
	Credential azcore.TokenCredential
	// Emulator is true only for emulator accounts on this machine: the one with its published name, and those with its
	// published key.
	Emulator bool

	key  string
	pool *http.Client
}

// EmulatorAccount returns the emulator's account on these loopback ports. Azurite's default ports are 10000, 10001 and
// 10002.
func EmulatorAccount(blobPort, queuePort, tablePort int) Account {
	return EmulatorAccountNamed(emulatorName, blobPort, queuePort, tablePort)
}

// EmulatorAccountNamed returns another emulator account with the published key: one that Azurite's variable
// AZURITE_ACCOUNTS names.
func EmulatorAccountNamed(name string, blobPort, queuePort, tablePort int) Account {
	return Account{
		Name:          name,
		BlobEndpoint:  loopback(blobPort, name),
		QueueEndpoint: loopback(queuePort, name),
		TableEndpoint: loopback(tablePort, name),
		Emulator:      true,
		key:           emulatorKey,
		pool:          newPool(emulatorIdle),
	}
}

// ConnectionString returns the account as a connection string with its key: for a child process's environment, not for
// logs. It is "" for an account that is used with an identity.
func (a Account) ConnectionString() string {
	if a.key == "" {
		return ""
	}
	protocol, _, _ := strings.Cut(a.BlobEndpoint, ":")
	return "DefaultEndpointsProtocol=" + protocol + ";AccountName=" + a.Name + ";AccountKey=" + a.key +
		";BlobEndpoint=" + a.BlobEndpoint + ";QueueEndpoint=" + a.QueueEndpoint + ";TableEndpoint=" + a.TableEndpoint + ";"
}

// SharedKey returns the account's name and key; ok is false when Credential is to be used.
func (a Account) SharedKey() (name, key string, ok bool) { return a.Name, a.key, a.key != "" }

// ClientOptions returns the options for an SDK client of this account: the shared pool, few and quick retries, and this
// timeout for one try.
func (a Account) ClientOptions(tryTimeout time.Duration) azcore.ClientOptions {
	options := azcore.ClientOptions{
		Retry: policy.RetryOptions{
			MaxRetries:    maxRetries,
			TryTimeout:    tryTimeout,
			RetryDelay:    retryDelay,
			MaxRetryDelay: maxRetryDelay,
		},
		PerCallPolicies:  []policy.Policy{singleTry{}},
		PerRetryPolicies: []policy.Policy{markUnanswered{}, recordResponse{}},
	}
	if a.pool != nil {
		options.Transport = a.pool
	}
	return options
}

// CloseIdleConnections closes the idle connections of the pool: at the end of a program or test.
func (a Account) CloseIdleConnections() {
	if a.pool != nil {
		a.pool.CloseIdleConnections()
	}
}

// String returns the endpoints and the kind of credential; it holds no key.
func (a Account) String() string {
	credential := "identity"
	if a.key != "" {
		credential = "shared key"
	}
	return "account " + a.Name + " (" + credential + ") at " + a.TableEndpoint + ", " + a.QueueEndpoint + ", " + a.BlobEndpoint
}

// GoString returns String, so that %#v shows no key either.
func (a Account) GoString() string { return a.String() }

// LogValue returns String for slog.
func (a Account) LogValue() slog.Value { return slog.StringValue(a.String()) }

// newPool returns the connection pool that copies of an Account share.
func newPool(idle time.Duration) *http.Client {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	transport = transport.Clone()
	transport.MaxIdleConns = 0
	transport.MaxIdleConnsPerHost = 100
	transport.IdleConnTimeout = idle
	return &http.Client{
		Transport: transport,
		// A storage service does not redirect; following one would send the request's signature elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
