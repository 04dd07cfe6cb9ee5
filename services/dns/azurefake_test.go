package dns_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	azureZoneID = "/subscriptions/3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11/resourceGroups/rg-dns/providers/Microsoft.Network/dnsZones/example.test"
	azureToken  = "a-token-for-resource-manager"
)

// azureSet is a TXT record set.
type azureSet struct {
	Metadata map[string]string     `json:"metadata,omitempty"`
	TTL      int                   `json:"TTL"`
	Records  []map[string][]string `json:"TXTRecords"`
}

// azureFake fakes Azure DNS behind Resource Manager, for the TXT record sets of one zone: entity tags with both
// conditions, 20 records a set, error documents, and faults on demand.
type azureFake struct {
	server *httptest.Server

	mu     sync.Mutex
	sets   map[string]azureSet
	tags   map[string]int
	faults []azureFault
	// others are values of another writer, one added before each of the next changes.
	others []string
}

func newAzureFake(t *testing.T) *azureFake {
	t.Helper()
	f := &azureFake{sets: map[string]azureSet{}, tags: map[string]int{}}
	f.server = httptest.NewTLSServer(f)
	t.Cleanup(f.server.Close)
	return f
}

// azureFault breaks the next request with a method: it is answered with a status, or, for status 0, applied without an
// answer.
type azureFault struct {
	method string
	status int
}

// fail breaks the next requests, one for each fault.
func (f *azureFake) fail(faults ...azureFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, faults...)
}

// values returns those of a record set, sorted.
func (f *azureFake) values(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, r := range f.sets[name].Records {
		all = append(all, strings.Join(r["value"], ""))
	}
	slices.Sort(all)
	return all
}

// ServeHTTP implements http.Handler.
func (f *azureFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	zone, name, ok := strings.Cut(r.URL.Path, "/TXT/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+azureToken:
		azureRefusal(w, http.StatusUnauthorized, "AuthenticationFailed")
		return
	case !ok || r.URL.Query().Get("api-version") != "2018-05-01":
		azureRefusal(w, http.StatusBadRequest, "InvalidApiVersionParameter")
		return
	case zone != azureZoneID:
		azureRefusal(w, http.StatusNotFound, "ParentResourceNotFound")
		return
	}
	if at := slices.IndexFunc(f.faults, func(fault azureFault) bool { return fault.method == r.Method }); at >= 0 {
		status := f.faults[at].status
		f.faults = slices.Delete(f.faults, at, at+1)
		if status != 0 {
			azureRefusal(w, status, "Fault")
			return
		}
		f.serve(httptest.NewRecorder(), r, name)
		panic(http.ErrAbortHandler) // net/http's way to drop a connection without an answer
	}
	f.serve(w, r, name)
}

// serve reads or changes a record set.
func (f *azureFake) serve(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method != http.MethodGet && len(f.others) > 0 {
		faster := f.sets[name]
		faster.TTL, faster.Records = 60, append(slices.Clone(faster.Records), map[string][]string{"value": {f.others[0]}})
		f.sets[name], f.others = faster, f.others[1:]
		f.tags[name]++
	}
	set, there := f.sets[name]
	tag := fmt.Sprintf("tag-%d", f.tags[name])
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case r.Method != http.MethodPut && !there:
		azureRefusal(w, http.StatusNotFound, "NotFound")
		return
	case match != "" && (!there || match != tag), none == "*" && there:
		azureRefusal(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	case r.Method == http.MethodDelete:
		delete(f.sets, name)
		return
	case r.Method == http.MethodPut:
		var document struct {
			Properties azureSet `json:"properties"`
		}
		if err := json.NewDecoder(r.Body).Decode(&document); err != nil || len(document.Properties.Records) > 20 || document.Properties.TTL < 1 {
			azureRefusal(w, http.StatusBadRequest, "BadRequest")
			return
		}
		set = document.Properties
		f.sets[name] = set
		f.tags[name]++
		tag = fmt.Sprintf("tag-%d", f.tags[name])
	}
	w.Header().Set("Content-Type", "application/json")
	// Ignore a client that disconnected.
	_ = json.NewEncoder(w).Encode(map[string]any{"id": azureZoneID + "/TXT/" + name, "name": name, "etag": tag, "properties": set})
}

// azureRefusal writes an error in the form of Azure DNS when the fault is below the zone, and of Resource Manager
// otherwise.
func azureRefusal(w http.ResponseWriter, status int, code string) {
	said := map[string]any{"code": code, "message": "because of " + code}
	if code != "NotFound" && code != "PreconditionFailed" {
		said = map[string]any{"error": said}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(said)
}
