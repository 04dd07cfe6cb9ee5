package dns_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"

	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/dns"
)

// armIdentity returns tokens for one address only.
type armIdentity struct{ address string }

func (c armIdentity) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if !slices.Equal(o.Scopes, []string{c.address + "/.default"}) {
		return azcore.AccessToken{}, fmt.Errorf("a token for %v", o.Scopes)
	}
	return azcore.AccessToken{Token: azureToken, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func (f *azureFake) open(t *testing.T, zone, id string) *dns.Azure {
	t.Helper()
	p, err := dns.NewAzure(zone, id, f.server.URL, armIdentity{f.server.URL}, &policy.ClientOptions{Transport: f.server.Client(),
		Retry: policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: 2 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Values are added and removed next to others, also concurrently; an empty record set is removed.
func TestAzure(t *testing.T) {
	t.Parallel()
	f := newAzureFake(t)
	const name = "_acme-challenge.www"
	var writers sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		p := f.open(t, "example.test", azureZoneID)
		writers.Go(func() {
			value := fmt.Sprint("value-", i)
			errs[i] = errors.Join(p.Add(t.Context(), challenge, value), p.Add(t.Context(), challenge, value))
			if i%2 == 0 {
				errs[i] = errors.Join(errs[i], p.Remove(t.Context(), challenge, value), p.Remove(t.Context(), challenge, value))
			}
		})
	}
	writers.Wait()
	if diff := cmp.Diff([]string{"value-1", "value-3", "value-5"}, f.values(name)); errors.Join(errs...) != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", errors.Join(errs...), diff)
	}
	p := f.open(t, "example.test", azureZoneID)
	for _, value := range []string{"value-1", "value-3", "value-5"} {
		if err := p.Remove(t.Context(), challenge, value); err != nil {
			t.Error(err)
		}
	}
	if _, there := f.sets[name]; there {
		t.Error("an empty record set stays")
	}
}

// A concurrent change between reading and writing a record set is not lost: the set is read again.
func TestAzureIsOvertaken(t *testing.T) {
	t.Parallel()
	f := newAzureFake(t)
	p := f.open(t, "example.test", azureZoneID)
	const name = "_acme-challenge.www"
	for _, step := range []struct {
		do    func(context.Context, string, string) error
		value string
		want  []string
	}{
		{p.Add, "v1", []string{"other-1", "v1"}},                  // both create the set
		{p.Add, "v2", []string{"other-1", "other-2", "v1", "v2"}}, // both write it
		{p.Remove, "v1", []string{"other-1", "other-2", "other-3", "v2"}},
	} {
		f.others = []string{fmt.Sprint("other-", len(f.values(name))/2+1)}
		if err := step.do(t.Context(), challenge, step.value); err != nil || !slices.Equal(f.values(name), step.want) {
			t.Errorf("%s: %v, %v", step.value, f.values(name), err)
		}
	}
	f.sets[name] = azureSet{TTL: 60, Records: []map[string][]string{{"value": {"v"}}}}
	f.others = []string{"other"}
	if err := p.Remove(t.Context(), challenge, "v"); err != nil || !slices.Equal(f.values(name), []string{"other"}) {
		t.Errorf("the last value: %v, %v", f.values(name), err)
	}
}

// Existing settings stay: the time to live, metadata, and values in pieces.
func TestAzureKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	f := newAzureFake(t)
	before := azureSet{Metadata: map[string]string{"owner": "mail"}, TTL: 7200, Records: []map[string][]string{{"value": {"long ", "text"}}}}
	f.sets["_acme-challenge.www"] = before
	p := f.open(t, "example.test", azureZoneID)
	testenv.OK(t, errors.Join(p.Add(t.Context(), challenge, "v"), p.Remove(t.Context(), challenge, "v")))
	if diff := cmp.Diff(before, f.sets["_acme-challenge.www"]); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// A lost answer and a busy service do not change the outcome.
func TestAzureFaults(t *testing.T) {
	t.Parallel()
	for what, faults := range map[string][]azureFault{
		"busy":                {{http.MethodGet, 429}, {http.MethodPut, 503}},
		"the read is lost":    {{http.MethodGet, 0}},
		"the write is lost":   {{http.MethodPut, 0}},
		"the removal is lost": {{http.MethodDelete, 0}},
	} {
		f := newAzureFake(t)
		f.fail(faults...)
		p := f.open(t, "example.test", azureZoneID)
		if err := p.Add(t.Context(), challenge, "v"); err != nil || !slices.Equal(f.values("_acme-challenge.www"), []string{"v"}) {
			t.Errorf("%s: %v, %v", what, f.values("_acme-challenge.www"), err)
		}
		if err := p.Remove(t.Context(), challenge, "v"); err != nil || len(f.values("_acme-challenge.www")) > 0 || len(f.faults) > 0 {
			t.Errorf("%s: %v, %v, left %v", what, f.values("_acme-challenge.www"), err, f.faults)
		}
	}
}

// A refusal has the service's text and a kind.
func TestAzureRefusals(t *testing.T) {
	t.Parallel()
	f := newAzureFake(t)
	elsewhere := strings.Replace(azureZoneID, "rg-dns", "rg-other", 1)
	for _, c := range []struct {
		what, id, name string
		faults         []azureFault
		want           error
		says           string
	}{
		{"no role", azureZoneID, challenge, []azureFault{{http.MethodGet, 403}}, dns.ErrForbidden, "because of Fault"},
		{"a zone that is not there", elsewhere, challenge, nil, dns.ErrRefused, "ParentResourceNotFound"},
		{"a name outside of the zone", azureZoneID, "www.example.org", nil, dns.ErrRefused, "below the zone"},
		{"a bad request", azureZoneID, challenge, []azureFault{{http.MethodPut, 400}}, dns.ErrRefused, "400"},
	} {
		f.fail(c.faults...)
		err := f.open(t, "example.test", c.id).Add(t.Context(), c.name, "v")
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	for _, bad := range [][2]string{{"example.test", "/subscriptions/x"}, {"example.org", azureZoneID}} {
		if _, err := dns.NewAzure(bad[0], bad[1], "", armIdentity{}, nil); err == nil || !strings.Contains(err.Error(), "zoneId") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := dns.NewAzure("example.test", azureZoneID, "http://x", nil, nil); err == nil || !strings.Contains(err.Error(), "https://") || !strings.Contains(err.Error(), "credential") {
		t.Errorf("no https: %v", err)
	}
}
