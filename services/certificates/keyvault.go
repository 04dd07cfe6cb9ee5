package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azcertificates"

	"github.com/vibedata/roundhouse/services/secrets"
)

// defaultTryTimeout bounds one request, so that a dead connection does not block an activity forever.
const defaultTryTimeout = 30 * time.Second

// The policy of certificates: the issuer is unknown to Key Vault, and servers of the certificate can fetch the key,
// with its chain, as the secret of the same name.
const (
	unknownIssuer  = "Unknown"
	contentType    = "application/x-pkcs12"
	validityMonths = 12 // Key Vault wants a number; the authority decides
	inProgress     = "inProgress"
)

// KeyVault is the Store over Azure Key Vault. The identity needs the permissions list, get, create and update for
// certificates (Key Vault Certificates Officer).
type KeyVault struct{ client *azcertificates.Client }

var _ Store = (*KeyVault)(nil)

// NewKeyVault returns a client of the vault at vaultURL ("https://{name}.vault.azure.net"); it accepts only https. It
// sends no request yet. opts may be nil; request bodies are never logged, regardless of opts.
func NewKeyVault(vaultURL string, credential azcore.TokenCredential, opts *azcertificates.ClientOptions) (*KeyVault, error) {
	u, err := url.Parse(vaultURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		// The URL is not quoted: it may hold a password.
		return nil, fmt.Errorf("open key vault: %w: the URL must be https://{host} and nothing more", secrets.ErrInvalid)
	}
	if credential == nil {
		return nil, errors.New("open key vault: no credential")
	}
	var options azcertificates.ClientOptions
	if opts != nil {
		options = *opts
	}
	options.Logging.IncludeBody = false
	if options.Retry.TryTimeout == 0 {
		options.Retry.TryTimeout = defaultTryTimeout
	}
	client, err := azcertificates.NewClient("https://"+u.Host, credential, &options)
	if err != nil {
		return nil, fmt.Errorf("open key vault: %w", err)
	}
	return &KeyVault{client: client}, nil
}

// Versions implements Store. It costs one request for every 25 versions.
func (k *KeyVault) Versions(ctx context.Context, name string) ([]Version, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("list certificate versions: %w", err)
	}
	var versions []Version
	pager := k.client.NewListCertificatePropertiesVersionsPager(name, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			if err = classify(err); errors.Is(err, secrets.ErrNotFound) {
				return nil, nil
			}
			return nil, fmt.Errorf("list versions of certificate %s: %w", name, err)
		}
		for _, item := range page.Value {
			if item.Attributes == nil || item.Attributes.Expires == nil {
				continue // a pending request: it has no certificate yet
			}
			v, err := versionOf(name, item.ID, item.Attributes, item.Tags)
			if err != nil {
				return nil, fmt.Errorf("list versions of certificate %s: %w", name, err)
			}
			versions = append(versions, v)
		}
	}
	sortVersions(versions)
	return versions, nil
}

// Leaf implements Store.
func (k *KeyVault) Leaf(ctx context.Context, name, version string) ([]byte, error) {
	if err := checkVersion(name, version); err != nil {
		return nil, fmt.Errorf("read certificate version: %w", err)
	}
	resp, err := k.client.GetCertificate(ctx, name, version, nil)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s version %s: %w", name, version, classify(err))
	}
	if len(resp.CER) == 0 {
		return nil, fmt.Errorf("read certificate %s version %s: %w: the version holds no certificate", name, version, secrets.ErrNotFound)
	}
	return resp.CER, nil
}

// Request implements Store.
func (k *KeyVault) Request(ctx context.Context, name string, domains []string, key KeyType) ([]byte, error) {
	if err := checkRequest(name, domains, key); err != nil {
		return nil, fmt.Errorf("request certificate: %w", err)
	}
	csr, err := k.pending(ctx, name)
	if err == nil || !errors.Is(err, ErrNoRequest) {
		return csr, err
	}
	made, err := k.client.CreateCertificate(ctx, name, azcertificates.CreateCertificateParameters{CertificatePolicy: policyFor(domains, key)}, nil)
	if isConflict(err) {
		// Another process was faster, or the SDK has repeated a request whose answer was lost.
		return k.pending(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("request certificate %s: %w", name, classify(err))
	}
	if len(made.CSR) == 0 {
		return nil, fmt.Errorf("request certificate %s: %w: the answer holds no signing request", name, secrets.ErrOutcomeUnknown)
	}
	return made.CSR, nil
}

// pending returns the pending request, or ErrNoRequest.
func (k *KeyVault) pending(ctx context.Context, name string) ([]byte, error) {
	resp, err := k.client.GetCertificateOperation(ctx, name, nil)
	if err != nil {
		if err = classify(err); errors.Is(err, secrets.ErrNotFound) {
			err = ErrNoRequest
		}
		return nil, fmt.Errorf("read the request of certificate %s: %w", name, err)
	}
	if resp.Status == nil || *resp.Status != inProgress || len(resp.CSR) == 0 {
		return nil, fmt.Errorf("read the request of certificate %s: %w", name, ErrNoRequest)
	}
	return resp.CSR, nil
}

// policyFor returns the policy of a certificate for the domains.
func policyFor(domains []string, key KeyType) *azcertificates.CertificatePolicy {
	names := make([]*string, len(domains))
	for i := range domains {
		names[i] = &domains[i]
	}
	return &azcertificates.CertificatePolicy{
		IssuerParameters: &azcertificates.IssuerParameters{Name: to.Ptr(unknownIssuer)},
		KeyProperties:    key.properties(),
		SecretProperties: &azcertificates.SecretProperties{ContentType: to.Ptr(contentType)},
		X509CertificateProperties: &azcertificates.X509CertificateProperties{
			Subject:                 to.Ptr("CN=" + commonName(domains)),
			SubjectAlternativeNames: &azcertificates.SubjectAlternativeNames{DNSNames: names},
			ValidityInMonths:        to.Ptr(int32(validityMonths)),
		},
	}
}

// properties returns those of a key that servers of the certificate can fetch.
func (k KeyType) properties() *azcertificates.KeyProperties {
	p := &azcertificates.KeyProperties{Exportable: to.Ptr(true), ReuseKey: to.Ptr(false)}
	if curve := k.curve(); curve != nil {
		p.KeyType, p.Curve = to.Ptr(azcertificates.KeyTypeEC), to.Ptr(azcertificates.CurveName(curve.Params().Name))
		return p
	}
	p.KeyType, p.KeySize = to.Ptr(azcertificates.KeyTypeRSA), to.Ptr(int32(k.bits()))
	return p
}

// Cancel implements Store.
func (k *KeyVault) Cancel(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("cancel certificate request: %w", err)
	}
	if _, err := k.client.DeleteCertificateOperation(ctx, name, nil); err != nil {
		if err = classify(err); !errors.Is(err, secrets.ErrNotFound) {
			return fmt.Errorf("cancel the request of certificate %s: %w", name, err)
		}
	}
	return nil
}

// Merge implements Store.
func (k *KeyVault) Merge(ctx context.Context, name string, chain [][]byte, tags map[string]string) (Version, error) {
	if err := checkName(name); err != nil {
		return Version{}, fmt.Errorf("merge certificate: %w", err)
	}
	leaf, err := checkChain(chain)
	if err != nil {
		return Version{}, fmt.Errorf("merge certificate %s: %w", name, err)
	}
	parameters := azcertificates.MergeCertificateParameters{X509Certificates: chain, Tags: pointers(tags),
		CertificateAttributes: &azcertificates.CertificateAttributes{Enabled: to.Ptr(true)}}
	resp, err := k.client.MergeCertificate(ctx, name, parameters, nil)
	if err != nil {
		return Version{}, fmt.Errorf("merge certificate %s: %w", name, k.whyNotMerged(ctx, name, leaf, classify(err)))
	}
	v, err := versionOf(name, resp.ID, resp.Attributes, resp.Tags)
	if err != nil {
		return Version{}, fmt.Errorf("merge certificate %s: %w", name, err)
	}
	return v, nil
}

// whyNotMerged distinguishes a wrong chain from one whose request is gone, or was replaced.
func (k *KeyVault) whyNotMerged(ctx context.Context, name string, leaf *x509.Certificate, refused error) error {
	if !errors.Is(refused, secrets.ErrNotFound) && !errors.Is(refused, secrets.ErrInvalid) {
		return refused
	}
	request, err := k.pending(ctx, name)
	switch {
	case errors.Is(err, ErrNoRequest), err == nil && !belongs(request, leaf):
		return fmt.Errorf("%w: %w", ErrNoRequest, hide(refused))
	default:
		return errors.Join(refused, err)
	}
}

// hide keeps only an error's text, so that callers do not match the wrapped error.
func hide(err error) error { return errors.New(err.Error()) }

// Disable implements Store.
func (k *KeyVault) Disable(ctx context.Context, name, version string) error {
	if err := checkVersion(name, version); err != nil {
		return fmt.Errorf("disable certificate version: %w", err)
	}
	parameters := azcertificates.UpdateCertificateParameters{
		CertificateAttributes: &azcertificates.CertificateAttributes{Enabled: to.Ptr(false)}}
	if _, err := k.client.UpdateCertificate(ctx, name, version, parameters, nil); err != nil {
		return fmt.Errorf("disable certificate %s version %s: %w", name, version, classify(err))
	}
	return nil
}

// versionOf reads a version from an answer, which may be incomplete.
func versionOf(name string, id *azcertificates.ID, a *azcertificates.CertificateAttributes, tags map[string]*string) (Version, error) {
	if id == nil || !secrets.ValidVersion(id.Version()) || a == nil || a.Created == nil || a.Expires == nil {
		return Version{}, fmt.Errorf("%w: the answer lacks the version's id or its times", secrets.ErrOutcomeUnknown)
	}
	v := Version{Name: name, Version: id.Version(), Created: a.Created.UTC(), NotAfter: a.Expires.UTC(), Enabled: a.Enabled == nil || *a.Enabled}
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
