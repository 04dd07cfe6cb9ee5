package certificatestest

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/services/certificates"
	"github.com/vibedata/roundhouse/services/secrets"
)

const name = "tls-example"

var (
	domains  = []string{"www.example.com", "example.com"}
	from, to = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Run tests the promises of package certificates. open makes a new, empty store for each test.
func Run(t *testing.T, open func(t *testing.T) certificates.Store) {
	t.Helper()
	cases := []struct {
		what string
		run  func(t *testing.T, store certificates.Store, ca *Authority)
	}{
		{"nothing there", nothing},
		{"a request stays until it is merged", requests},
		{"a canceled request is gone, with its key", cancels},
		{"merge needs the request that the chain is for", merges},
		{"versions", versions},
		{"keys are of the type that is asked for", keyTypes},
		{"limits", limits},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t), NewAuthority(t))
		})
	}
}

func nothing(t *testing.T, store certificates.Store, ca *Authority) {
	ctx := t.Context()
	if list, err := store.Versions(ctx, name); err != nil || len(list) != 0 {
		t.Errorf("Versions = %v, %v", list, err)
	}
	if err := store.Cancel(ctx, name); err != nil {
		t.Errorf("Cancel = %v", err)
	}
	id := strings.Repeat("0a", 16)
	if _, err := store.Leaf(ctx, name, id); !errors.Is(err, secrets.ErrNotFound) {
		t.Errorf("Leaf = %v", err)
	}
	if err := store.Disable(ctx, name, id); !errors.Is(err, secrets.ErrNotFound) {
		t.Errorf("Disable = %v", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := store.Request(canceled, name, domains, certificates.DefaultKeyType); !errors.Is(err, context.Canceled) {
		t.Errorf("Request with a canceled context = %v", err)
	}
}

func requests(t *testing.T, store certificates.Store, ca *Authority) {
	first := request(t, store)
	if again := request(t, store); !bytes.Equal(first, again) {
		t.Error("there are two requests")
	}
	other, err := store.Request(t.Context(), name, []string{"other.example.com"}, certificates.DefaultKeyType)
	if err != nil || !bytes.Equal(first, other) {
		t.Errorf("another request while one is under way: %v", err)
	}
	csr, err := x509.ParseCertificateRequest(first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(domains, csr.DNSNames); diff != "" || csr.CheckSignature() != nil || csr.Subject.CommonName != domains[0] {
		t.Errorf("subject %s, names (-want +got):\n%s", csr.Subject, diff)
	}
	if list, err := store.Versions(t.Context(), name); err != nil || len(list) != 0 {
		t.Errorf("a request under way is a version: %v, %v", list, err)
	}
	merge(t, store, ca, first, nil)
	if next := request(t, store); bytes.Equal(first, next) {
		t.Error("the merged request is still under way")
	}
}

func cancels(t *testing.T, store certificates.Store, ca *Authority) {
	first := request(t, store)
	for range 2 {
		if err := store.Cancel(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	chain := ca.Sign(t, first, from, to)
	if _, err := store.Merge(t.Context(), name, chain, nil); !errors.Is(err, certificates.ErrNoRequest) {
		t.Errorf("Merge without a request = %v", err)
	}
	if next := request(t, store); bytes.Equal(first, next) {
		t.Error("the request is back")
	}
	if _, err := store.Merge(t.Context(), name, chain, nil); !errors.Is(err, certificates.ErrNoRequest) {
		t.Errorf("Merge for another request = %v", err)
	}
}

func merges(t *testing.T, store certificates.Store, ca *Authority) {
	csr := request(t, store)
	for what, chain := range map[string][][]byte{"no chain": nil, "garbage": {[]byte("x")}} {
		if _, err := store.Merge(t.Context(), name, chain, nil); !errors.Is(err, secrets.ErrInvalid) {
			t.Errorf("Merge of %s = %v", what, err)
		}
	}
	v := merge(t, store, ca, csr, map[string]string{"job": "j 1/ü"})
	if v.Name != name || !secrets.ValidVersion(v.Version) || !v.Enabled || !v.NotAfter.Equal(to) || v.Created.Nanosecond() != 0 || v.Tags["job"] != "j 1/ü" {
		t.Errorf("Merge = %+v", v)
	}
	list, err := store.Versions(t.Context(), name)
	if diff := cmp.Diff([]certificates.Version{v}, list); err != nil || diff != "" {
		t.Errorf("Versions: %v (-merged +listed):\n%s", err, diff)
	}
	leaf, err := store.Leaf(t.Context(), name, v.Version)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(leaf)
	if err != nil || !slices.Equal(parsed.DNSNames, domains) {
		t.Errorf("Leaf: %v", err)
	}
	if _, err := store.Merge(t.Context(), name, ca.Sign(t, csr, from, to), nil); !errors.Is(err, certificates.ErrNoRequest) {
		t.Errorf("Merge again = %v", err)
	}
}

func versions(t *testing.T, store certificates.Store, ca *Authority) {
	var want []certificates.Version
	for i := range 30 { // more than a page
		want = append(want, merge(t, store, ca, request(t, store), map[string]string{"n": fmt.Sprint(i)}))
	}
	request(t, store)
	for range 2 {
		if err := store.Disable(t.Context(), name, want[7].Version); err != nil {
			t.Fatal(err)
		}
	}
	want[7].Enabled = false
	slices.SortFunc(want, certificates.Compare)
	got, err := store.Versions(t.Context(), strings.ToUpper(name))
	for i := range got {
		got[i].Name = name
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Versions: %v (-want +got):\n%s", err, diff)
	}
	if _, err := store.Leaf(t.Context(), name, want[0].Version); err != nil {
		t.Errorf("Leaf = %v", err)
	}
}

func limits(t *testing.T, store certificates.Store, _ *Authority) {
	long := strings.Repeat("a", 60) + ".example.com"
	many := make([]string, certificates.MaxDomains+1)
	for i := range many {
		many[i] = fmt.Sprintf("n%d.example.com", i)
	}
	cases := []struct {
		what, name string
		domains    []string
		ok         bool
	}{
		{"no name", "", domains, false},
		{"a slash", "a/b", domains, false},
		{"no domains", name, nil, false},
		{"too many domains", name, many, false},
		{"a long domain alone", name, []string{long}, false},
		{"a long domain beside a short one", "tls-long", []string{long, "example.com"}, true},
		{"as many domains as may be", "tls-many", many[1:], true},
	}
	for _, c := range cases {
		_, err := store.Request(t.Context(), c.name, c.domains, certificates.DefaultKeyType)
		if c.ok != (err == nil) || !c.ok && !errors.Is(err, secrets.ErrInvalid) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if _, err := store.Leaf(t.Context(), name, "../x"); !errors.Is(err, secrets.ErrInvalid) {
		t.Errorf("Leaf of a path = %v", err)
	}
	if err := store.Disable(t.Context(), name, ""); !errors.Is(err, secrets.ErrInvalid) {
		t.Errorf("Disable of no version = %v", err)
	}
}

func keyTypes(t *testing.T, store certificates.Store, ca *Authority) {
	for _, key := range certificates.KeyTypes() {
		csr, err := store.Request(t.Context(), name, domains, key)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		leaf, err := store.Leaf(t.Context(), name, merge(t, store, ca, csr, nil).Version)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificate(leaf)
		if err != nil || certificates.KeyTypeOf(parsed.PublicKey) != key {
			t.Errorf("%s: a key of type %q, %v", key, certificates.KeyTypeOf(parsed.PublicKey), err)
		}
	}
	if _, err := store.Request(t.Context(), name, domains, "RSA-1024"); !errors.Is(err, secrets.ErrInvalid) || !strings.Contains(err.Error(), "RSA-2048") {
		t.Errorf("a key type that authorities refuse: %v", err)
	}
}

func request(t *testing.T, store certificates.Store) []byte {
	t.Helper()
	csr, err := store.Request(t.Context(), name, domains, certificates.DefaultKeyType)
	if err != nil {
		t.Fatal(err)
	}
	return csr
}

func merge(t *testing.T, store certificates.Store, ca *Authority, csr []byte, tags map[string]string) certificates.Version {
	t.Helper()
	v, err := store.Merge(t.Context(), name, ca.Sign(t, csr, from, to), tags)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
