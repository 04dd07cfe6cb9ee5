package secrets

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"
)

// contentType marks values that this package wrote: bytes as standard base64.
const contentType = "application/octet-stream;base64"

// defaultTryTimeout bounds one request, so that a dead connection does not block an activity forever.
const defaultTryTimeout = 30 * time.Second

// KeyVault is the Store over Azure Key Vault. The identity needs the permissions list and set for secrets, and get only
// where Value is used.
type KeyVault struct {
	client *azsecrets.Client
	// addRetry repeats only rejected requests, because each applied request makes a version.
	addRetry policy.RetryOptions
}

var (
	_ Store  = (*KeyVault)(nil)
	_ Reader = (*KeyVault)(nil)
)

// NewKeyVault returns a client of the vault at vaultURL ("https://{name}.vault.azure.net"); it accepts only https. It
// sends no request yet. opts may be nil; request bodies are never logged, regardless of opts.
func NewKeyVault(vaultURL string, credential azcore.TokenCredential, opts *azsecrets.ClientOptions) (*KeyVault, error) {
	if err := checkVaultURL(vaultURL); err != nil {
		return nil, err
	}
	if credential == nil {
		return nil, errors.New("open key vault: no credential")
	}
	var options azsecrets.ClientOptions
	if opts != nil {
		options = *opts
	}
	options.Logging.IncludeBody = false
	if options.Retry.TryTimeout == 0 {
		options.Retry.TryTimeout = defaultTryTimeout
	}
	// The slice is the caller's: appending in place could write into its array.
	options.PerRetryPolicies = append(append([]policy.Policy(nil), options.PerRetryPolicies...), sentPolicy{})
	client, err := azsecrets.NewClient(strings.TrimSuffix(vaultURL, "/"), credential, &options)
	if err != nil {
		return nil, fmt.Errorf("open key vault: %w", err)
	}
	addRetry := options.Retry
	addRetry.ShouldRetry = func(resp *http.Response, err error) bool {
		return err == nil && resp.StatusCode == http.StatusTooManyRequests
	}
	return &KeyVault{client: client, addRetry: addRetry}, nil
}

// checkVaultURL checks that a URL is https://host[:port][/]. The error does not quote the URL: it may hold a password.
func checkVaultURL(vaultURL string) error {
	u, err := url.Parse(vaultURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("open key vault: %w: the URL must be https://{host} and nothing more", ErrInvalid)
	}
	return nil
}

// Versions implements Store. It costs one request for every 25 versions.
func (k *KeyVault) Versions(ctx context.Context, name string) ([]Version, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("list secret versions: %w", err)
	}
	var versions []Version
	pager := k.client.NewListSecretPropertiesVersionsPager(name, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			err = classify(err, "")
			if errors.Is(err, ErrNotFound) {
				return nil, nil
			}
			return nil, fmt.Errorf("list versions of secret %s: %w", name, err)
		}
		for _, item := range page.Value {
			v, err := versionOf(name, item.ID, item.Attributes, item.Tags)
			if err != nil {
				return nil, fmt.Errorf("list versions of secret %s: %w", name, err)
			}
			versions = append(versions, v)
		}
	}
	sortVersions(versions)
	return versions, nil
}

// Add implements Store. Only a request that Key Vault rejected for its rate (429) is repeated.
func (k *KeyVault) Add(ctx context.Context, name string, value []byte, tags map[string]string) (Version, error) {
	if err := checkAdd(name, value, tags); err != nil {
		return Version{}, fmt.Errorf("add secret version: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(value)
	parameters := azsecrets.SetSecretParameters{
		Value:            &text,
		ContentType:      to.Ptr(contentType),
		SecretAttributes: &azsecrets.SecretAttributes{Enabled: to.Ptr(true)},
		Tags:             pointers(tags),
	}
	sent := new(atomic.Bool)
	ctx = context.WithValue(policy.WithRetryOptions(ctx, k.addRetry), sentKey{}, sent)
	resp, err := k.client.SetSecret(ctx, name, parameters, nil)
	if err != nil {
		return Version{}, fmt.Errorf("add version of secret %s: %w", name, classifyAdd(err, text, sent.Load()))
	}
	v, err := versionOf(name, resp.ID, resp.Attributes, resp.Tags)
	if err != nil {
		return Version{}, fmt.Errorf("add version of secret %s: %w", name, err)
	}
	return v, nil
}

// Disable implements Store.
func (k *KeyVault) Disable(ctx context.Context, name, version string) error {
	if err := checkVersion(name, version); err != nil {
		return fmt.Errorf("disable secret version: %w", err)
	}
	parameters := azsecrets.UpdateSecretPropertiesParameters{
		SecretAttributes: &azsecrets.SecretAttributes{Enabled: to.Ptr(false)},
	}
	if _, err := k.client.UpdateSecretProperties(ctx, name, version, parameters, nil); err != nil {
		return fmt.Errorf("disable secret %s version %s: %w", name, version, classify(err, ""))
	}
	return nil
}

// Value implements Reader. A value that another program stored, under another content type, is returned as its text.
func (k *KeyVault) Value(ctx context.Context, name, version string) ([]byte, error) {
	if err := checkVersion(name, version); err != nil {
		return nil, fmt.Errorf("read secret version: %w", err)
	}
	resp, err := k.client.GetSecret(ctx, name, version, nil)
	if err != nil {
		return nil, fmt.Errorf("read secret %s version %s: %w", name, version, classify(err, ""))
	}
	if resp.Value == nil {
		return nil, fmt.Errorf("read secret %s version %s: %w: the answer holds no value", name, version, ErrOutcomeUnknown)
	}
	if resp.ContentType == nil || *resp.ContentType != contentType {
		return []byte(*resp.Value), nil
	}
	value, err := base64.StdEncoding.DecodeString(*resp.Value)
	if err != nil {
		// The decoder's own error is left out: it quotes the input's position, and the input is a secret.
		return nil, fmt.Errorf("read secret %s version %s: %w: its content type says base64 and it is not", name, version, ErrInvalid)
	}
	return value, nil
}

// versionOf reads a version from an answer, which may be incomplete.
func versionOf(name string, id *azsecrets.ID, attributes *azsecrets.SecretAttributes, tags map[string]*string) (Version, error) {
	if id == nil || !ValidVersion(id.Version()) || attributes == nil || attributes.Created == nil {
		return Version{}, fmt.Errorf("%w: the answer lacks the version's id or its creation time", ErrOutcomeUnknown)
	}
	v := Version{
		Name:    name,
		Version: id.Version(),
		Created: attributes.Created.UTC(),
		Updated: attributes.Created.UTC(),
		Enabled: attributes.Enabled == nil || *attributes.Enabled,
	}
	if attributes.Updated != nil && attributes.Updated.After(*attributes.Created) {
		v.Updated = attributes.Updated.UTC()
	}
	for tag, text := range tags {
		if text == nil {
			continue
		}
		if v.Tags == nil {
			v.Tags = make(map[string]string, len(tags))
		}
		v.Tags[tag] = *text
	}
	return v, nil
}

// pointers converts tags to the SDK's form.
func pointers(tags map[string]string) map[string]*string {
	out := make(map[string]*string, len(tags))
	for tag, text := range tags {
		out[tag] = &text
	}
	return out
}
