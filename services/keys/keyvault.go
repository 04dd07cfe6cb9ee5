package keys

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"

	"github.com/vibedata/roundhouse/codec"
)

// tryTimeout bounds one request, so that a dead connection does not block callers for long.
const tryTimeout = 10 * time.Second

// KeyVault wraps data keys with an RSA key of Azure Key Vault, by RSA-OAEP-256. The identity needs the permissions get,
// wrapKey and unwrapKey for keys, as the role Key Vault Crypto Service Encryption User gives them. An id of a key is
// {name}/{version}.
type KeyVault struct {
	client *azkeys.Client
	name   string
}

var _ codec.Keys = (*KeyVault)(nil)

// NewKeyVault returns a client of the vault at vaultURL ("https://{name}.vault.azure.net"). name is the key that wraps;
// with "" data keys can only be unwrapped. It sends no request yet. opts may be nil; request bodies are never logged,
// regardless of opts.
func NewKeyVault(vaultURL, name string, credential azcore.TokenCredential, opts *azkeys.ClientOptions) (*KeyVault, error) {
	u, err := url.Parse(vaultURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("open key vault: %w: the URL must be https://{host} and nothing more", ErrInvalid)
	}
	if credential == nil {
		return nil, errors.New("open key vault: no credential")
	}
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("open key vault: %w", err)
	}
	var options azkeys.ClientOptions
	if opts != nil {
		options = *opts
	}
	options.Logging.IncludeBody = false
	if options.Retry.TryTimeout == 0 {
		options.Retry.TryTimeout = tryTimeout
	}
	client, err := azkeys.NewClient(strings.TrimSuffix(vaultURL, "/"), credential, &options)
	if err != nil {
		return nil, fmt.Errorf("open key vault: %w", err)
	}
	return &KeyVault{client, name}, nil
}

// Wrap implements codec.Keys. It costs two requests: one for the newest version, one that wraps.
func (k *KeyVault) Wrap(ctx context.Context, key []byte) (wrapped []byte, id string, err error) {
	if k.name == "" {
		return nil, "", fmt.Errorf("wrap a data key: %w", ErrNoName)
	}
	newest, err := k.client.GetKey(ctx, k.name, "", nil)
	if err != nil {
		return nil, "", fmt.Errorf("find the key %s: %w", k.name, classify(err))
	}
	if newest.Key == nil || newest.Key.KID == nil || newest.Key.Kty == nil {
		return nil, "", fmt.Errorf("find the key %s: %w: the answer lacks its version or its type", k.name, ErrUnavailable)
	}
	if kind := *newest.Key.Kty; kind != azkeys.KeyTypeRSA && kind != azkeys.KeyTypeRSAHSM {
		return nil, "", fmt.Errorf("wrap a data key with %s: %w: it is a key of type %s: make one of type RSA or RSA-HSM", k.name, ErrInvalid, kind)
	}
	version := newest.Key.KID.Version()
	id = k.name + "/" + version
	if _, _, err := splitID(id); err != nil {
		return nil, "", fmt.Errorf("find the key %s: %w", k.name, err)
	}
	answer, err := k.client.WrapKey(ctx, k.name, version, parameters(key), nil)
	if err != nil {
		return nil, "", fmt.Errorf("wrap a data key with %s: %w", id, classify(err))
	}
	if len(answer.Result) == 0 {
		return nil, "", fmt.Errorf("wrap a data key with %s: %w: the answer is empty", id, ErrUnavailable)
	}
	return answer.Result, id, nil
}

// Unwrap implements codec.Keys. The version in id may be older than the newest, and of another key of the vault.
func (k *KeyVault) Unwrap(ctx context.Context, id string, wrapped []byte) ([]byte, error) {
	name, version, err := splitID(id)
	if err != nil {
		return nil, fmt.Errorf("unwrap a data key: %w", err)
	}
	answer, err := k.client.UnwrapKey(ctx, name, version, parameters(wrapped), nil)
	if err != nil {
		return nil, fmt.Errorf("unwrap a data key with %s: %w", id, classify(err))
	}
	return answer.Result, nil
}

func parameters(value []byte) azkeys.KeyOperationParameters {
	return azkeys.KeyOperationParameters{Algorithm: to.Ptr(azkeys.EncryptionAlgorithmRSAOAEP256), Value: value}
}
