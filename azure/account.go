// Package azure is Roundhouse on Azure Storage: the storage account (FromEnvironment, FromConnectionString,
// EmulatorAccount) and the adapters that make a tables.Store, a queues.Store and a blobs.Store of it (NewTables, NewQueues,
// NewBlobs). It is the one package with the storage SDK; who runs in memory does not import it.
//
// An Account holds the three endpoints, the credential, one pool of connections and the retries on it. No error, log line
// or printed Account holds a key. The adapters check every request with the code of the packages that they implement, and
// every failure is one of those packages' errors; errors.As finds the SDK's own *azcore.ResponseError in it. The
// conformance suites tables/tablestest, queues/queuestest and blobs/blobstest hold them to what the stores in memory do.
//
// The package owns no storage keys, and of the environment only the settings that FromEnvironment names.
package azure

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// The emulator's account, which is the same everywhere and published by its makers: not a secret.
const (
	emulatorName = "devstoreaccount1"
	emulatorKey  = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// How requests are repeated. An insert that is repeated after a lost answer finds its own entity.
const (
	maxRetries    = 3
	retryDelay    = 200 * time.Millisecond
	maxRetryDelay = 2 * time.Second
)

// How long an unused connection is kept. The emulator closes one after five seconds: leave it before that, or a
// request may meet the closing.
const (
	serviceIdle  = 90 * time.Second
	emulatorIdle = 4 * time.Second
)

// Account is a storage account: build it with FromEnvironment, FromConnectionString or EmulatorAccount. Copies share one pool
// of connections.
type Account struct {
	// Name is the account's name; "" when it was given by its endpoints alone.
	Name string
	// TableEndpoint, QueueEndpoint and BlobEndpoint are the services' URLs, without a slash at the end.
	TableEndpoint, QueueEndpoint, BlobEndpoint string
	// Credential authorizes requests when there is no shared key.
	Credential azcore.TokenCredential
	// Emulator is true for the emulator's accounts on this machine, and only there: the one with its published name, and those
	// with its published key.
	Emulator bool

	key  string
	pool *http.Client
}

// EmulatorAccount is the emulator on these loopback ports, as Azurite is started by this program and by default
// (10000, 10001 and 10002).
func EmulatorAccount(blobPort, queuePort, tablePort int) Account {
	return EmulatorAccountNamed(emulatorName, blobPort, queuePort, tablePort)
}

// EmulatorAccountNamed is another account of the emulator, one with the emulator's published key: Azurite has those that its
// variable AZURITE_ACCOUNTS names.
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

// ConnectionString is the account as a connection string, key included: for a child process's environment, not for
// logs. It is "" for an account that is reached with an identity.
func (a Account) ConnectionString() string {
	if a.key == "" {
		return ""
	}
	protocol, _, _ := strings.Cut(a.BlobEndpoint, ":")
	return "DefaultEndpointsProtocol=" + protocol + ";AccountName=" + a.Name + ";AccountKey=" + a.key +
		";BlobEndpoint=" + a.BlobEndpoint + ";QueueEndpoint=" + a.QueueEndpoint + ";TableEndpoint=" + a.TableEndpoint + ";"
}

// SharedKey gives the account's name and key; ok is false when Credential is to be used.
func (a Account) SharedKey() (name, key string, ok bool) { return a.Name, a.key, a.key != "" }

// ClientOptions are the options for an SDK client of this account: the shared pool, few and quick retries, and this
// time for one try.
func (a Account) ClientOptions(tryTimeout time.Duration) azcore.ClientOptions {
	options := azcore.ClientOptions{
		Retry: policy.RetryOptions{
			MaxRetries:    maxRetries,
			TryTimeout:    tryTimeout,
			RetryDelay:    retryDelay,
			MaxRetryDelay: maxRetryDelay,
		},
		PerCallPolicies:  []policy.Policy{singleTry{}},
		PerRetryPolicies: []policy.Policy{markUnanswered{}, tellPolicy{}},
	}
	if a.pool != nil {
		options.Transport = a.pool
	}
	return options
}

// CloseIdleConnections closes the pooled connections that no request uses: at the end of a program or test.
func (a Account) CloseIdleConnections() {
	if a.pool != nil {
		a.pool.CloseIdleConnections()
	}
}

// String names the endpoints and the kind of credential; it holds no key.
func (a Account) String() string {
	credential := "identity"
	if a.key != "" {
		credential = "shared key"
	}
	return "account " + a.Name + " (" + credential + ") at " + a.TableEndpoint + ", " + a.QueueEndpoint + ", " + a.BlobEndpoint
}

// GoString is String, so that %#v shows no key either.
func (a Account) GoString() string { return a.String() }

// LogValue is String for slog.
func (a Account) LogValue() slog.Value { return slog.StringValue(a.String()) }

// newPool makes the connections that copies of an Account share.
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
