package api

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/vibedata/roundhouse/orchestrator/tasks"
)

// A token is taken for the filter that it was made for only, and is one that sealToken makes.
func FuzzOpenToken(f *testing.F) {
	f.Add("", "f")
	f.Add(sealToken("place", "f"), "f")
	f.Add(sealToken("place", "g"), "f")
	f.Add("e30", "f")
	f.Fuzz(func(t *testing.T, token, fingerprint string) {
		place, err := openToken(token, fingerprint)
		if err == nil && sealToken(place, fingerprint) != token {
			t.Errorf("%q is taken for %q", token, place)
		}
		if sealed := sealToken(token, fingerprint); len(sealed) <= maxToken {
			if again, err := openToken(sealed, fingerprint); (err != nil || again != token) && !invalid(token, fingerprint) {
				t.Errorf("%q does not come back: %q, %v", token, again, err)
			}
		}
	})
}

// invalid says that JSON does not keep a text.
func invalid(texts ...string) bool {
	for _, text := range texts {
		for _, r := range text {
			if r == '\uFFFD' {
				return true
			}
		}
	}
	return false
}

// Whatever the header of a caller holds: it is nobody, or somebody with a name, and never somebody who may do everything.
func FuzzPerson(f *testing.F) {
	f.Add([]byte(anyone))
	f.Add([]byte(`{"name_typ":"n","role_typ":"r","claims":[{"typ":"n","val":"ann"},{"typ":"r","val":"keeper"},{"typ":"tid","val":"home"}]}`))
	f.Add([]byte(`{"claims":null}`))
	f.Fuzz(func(t *testing.T, header []byte) {
		a := &api{easyAuth: true, homeTenant: "home", adminRole: "keeper"}
		r := &request{http: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/tasks", nil)}
		r.http.Header.Set("X-MS-CLIENT-PRINCIPAL", base64.StdEncoding.EncodeToString(header))
		p, err := a.person(r)
		switch {
		case err != nil || len(header) == 0:
		case p.Name == "" || p.Name == keyIdentity:
			t.Errorf("%s is let in as %+v", header, p)
		case p.TenantID == "" && !p.Sees(tasks.Task{TenantID: "x"}), p.All && p.TenantID != "":
			t.Errorf("%s is %+v", header, p)
		}
	})
}
