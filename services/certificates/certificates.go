// Package certificates is the interface to the certificate store: Azure Key Vault in production, a table in the storage
// emulator on a developer's machine.
//
// A private key is made in the store and never leaves it through this package. The store returns a signing request, and
// the chain that an authority issued for it is merged. So a process that dies between the two neither loses nor leaks
// anything.
//
// Errors are ErrNoRequest and those of package secrets, its sibling (Key Vault keeps both in one vault).
//
// Storage keys: the development twin owns the table named by DevelopmentTable (partition: certificate name; rows: one
// per version, and "request" for a pending one).
package certificates

import (
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/services/secrets"
)

// ErrNoRequest means that the certificate has no pending signing request, or not the one for which the chain was
// issued; it was merged or canceled. Read the certificate again.
var ErrNoRequest = errors.New("no such signing request")

// MaxDomains bounds the names of a certificate; public authorities accept as many.
const MaxDomains = 100

// maxCommonName is the longest name in a certificate's subject (RFC 5280, appendix A).
const maxCommonName = 64

// Version describes one version of a certificate.
type Version struct {
	// Name is the certificate's name.
	Name string
	// Version is 32 lower-case hex digits. Its order is unrelated to age.
	Version string
	// Tags are those passed to Merge; nil without any.
	Tags map[string]string
	// Created is when the store made the version: UTC, whole seconds, by the clock of the store.
	Created time.Time
	// NotAfter is when the certificate expires (UTC).
	NotAfter time.Time
	// Enabled is false once the version has been disabled.
	Enabled bool
}

// Store is the certificate store of engines. Implementations are safe for concurrent use. Names are as secret names: 1
// to 127 letters, digits and dashes.
type Store interface {
	// Versions lists the versions of a certificate, in the order of Compare; none when it does not exist. A pending
	// request is not a version.
	Versions(ctx context.Context, name string) ([]Version, error)
	// Leaf returns the certificate itself, without its key (DER), or ErrNotFound.
	Leaf(ctx context.Context, name, version string) ([]byte, error)
	// Request returns the pending signing request (DER, PKCS #10) of the certificate. Without one, it makes the store
	// create a key of the type and a request for the domains first. A pending request may be for other domains, or of
	// another type: Cancel it.
	Request(ctx context.Context, name string, domains []string, key KeyType) ([]byte, error)
	// Cancel drops the pending request, and its key. Repeating it changes nothing.
	Cancel(ctx context.Context, name string) error
	// Merge makes a version of the pending request and the chain that was issued for it (DER, leaf first). It is not
	// idempotent: after an error, search for your own tags. ErrNoRequest means that no request is pending.
	Merge(ctx context.Context, name string, chain [][]byte, tags map[string]string) (Version, error)
	// Disable makes a version unusable without deleting it. Repeating it changes nothing.
	Disable(ctx context.Context, name, version string) error
}

// Compare orders versions: oldest first, and by version name among those of one second.
func Compare(a, b Version) int {
	return cmp.Or(a.Created.Compare(b.Created), a.NotAfter.Compare(b.NotAfter), strings.Compare(a.Version, b.Version))
}

// sortVersions sorts versions in the order of Versions.
func sortVersions(versions []Version) { slices.SortFunc(versions, Compare) }

// commonName returns the name for the subject: the first one that fits.
func commonName(domains []string) string {
	at := slices.IndexFunc(domains, func(d string) bool { return len(d) <= maxCommonName })
	if at < 0 {
		return ""
	}
	return domains[at]
}

// checkRequest checks the arguments of Request against the limits.
func checkRequest(name string, domains []string, key KeyType) error {
	if err := errors.Join(checkName(name), key.Validate()); err != nil {
		return err
	}
	if len(domains) == 0 || len(domains) > MaxDomains {
		return fmt.Errorf("%w: %d domains, allowed are 1 to %d", secrets.ErrInvalid, len(domains), MaxDomains)
	}
	if commonName(domains) == "" {
		return fmt.Errorf("%w: one of the domains must have at most %d characters, to be the subject's name", secrets.ErrInvalid, maxCommonName)
	}
	return nil
}

// Belongs reports whether a certificate was issued for the key of a signing request.
func Belongs(request *x509.CertificateRequest, leaf *x509.Certificate) bool {
	key, ok := request.PublicKey.(interface {
		Equal(key crypto.PublicKey) bool
	})
	return ok && key.Equal(leaf.PublicKey)
}

// belongs is Belongs for a stored request.
func belongs(request []byte, leaf *x509.Certificate) bool {
	parsed, err := x509.ParseCertificateRequest(request)
	return err == nil && Belongs(parsed, leaf)
}

// checkChain parses the leaf of a chain.
func checkChain(chain [][]byte) (*x509.Certificate, error) {
	if len(chain) == 0 {
		return nil, fmt.Errorf("%w: an empty chain", secrets.ErrInvalid)
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("%w: the leaf: %w", secrets.ErrInvalid, err)
	}
	return leaf, nil
}

// checkName refuses a name before it becomes part of a URL or a key.
func checkName(name string) error {
	if !secrets.ValidName(name) {
		return fmt.Errorf("%w: certificate name must be 1 to %d letters, digits and dashes", secrets.ErrInvalid, secrets.MaxName)
	}
	return nil
}

// checkVersion does the same for a name and a version.
func checkVersion(name, version string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !secrets.ValidVersion(version) {
		return fmt.Errorf("%w: version must be 32 lower-case hex digits", secrets.ErrInvalid)
	}
	return nil
}
