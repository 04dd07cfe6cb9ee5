package intake_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/engine/provisioning"
	"github.com/vibedata/roundhouse/handler/intake"
	"github.com/vibedata/roundhouse/internal/marketplacefake"
	"github.com/vibedata/roundhouse/internal/testenv"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	set := func(name string, value any) func(map[string]any) { return func(c map[string]any) { c[name] = value } }
	version2 := func(c map[string]any) {
		delete(c, "appid")
		c["iss"], c["azp"], c["ver"] = d.issuer.Authority()+"/"+tenant+"/v2.0", intake.MarketplaceCaller, "2.0"
	}
	tests := map[string]struct {
		change func(c map[string]any)
		status int
	}{
		"version 1":              {func(map[string]any) {}, 200},
		"version 2":              {version2, 200},
		"another audience":       {set("aud", "someone"), 401},
		"two audiences":          {set("aud", []string{audience, "someone"}), 401},
		"another tenant":         {set("tid", "1c2f6d3e-9e3f-4a44-8a2e-6f1d1d4a6f11"), 401},
		"no tenant":              {func(c map[string]any) { delete(c, "tid") }, 401},
		"another issuer":         {set("iss", "https://sts.windows.net/1c2f6d3e-9e3f-4a44-8a2e-6f1d1d4a6f11/"), 401},
		"no issuer":              {func(c map[string]any) { delete(c, "iss") }, 401},
		"another caller":         {set("appid", "someone"), 401},
		"no caller":              {func(c map[string]any) { delete(c, "appid") }, 401},
		"version 2 with appid":   {func(c map[string]any) { version2(c); c["appid"] = c["azp"]; delete(c, "azp") }, 401},
		"version 1 with azp":     {func(c map[string]any) { c["azp"] = c["appid"]; delete(c, "appid") }, 401},
		"over":                   {set("exp", time.Now().Add(-time.Hour).Unix()), 401},
		"without end":            {func(c map[string]any) { delete(c, "exp") }, 401},
		"not yet":                {set("nbf", time.Now().Add(time.Hour).Unix()), 401},
		"another TID":            {set("TID", tenant), 401},
		"another Aud":            {set("Aud", audience), 401},
		"the caller as AppId":    {func(c map[string]any) { c["AppId"] = c["appid"]; delete(c, "appid") }, 401},
		"a later EXP":            {set("EXP", time.Now().Add(time.Hour).Unix()), 401},
		"the end as a text":      {set("exp", fmt.Sprint(time.Now().Add(time.Hour).Unix())), 401},
		"the start as a text":    {set("nbf", "0"), 401},
		"the tenant as a number": {set("tid", 1), 401},
		"a claim of another app": {set("Extension", "x"), 200},
		"caller as a collection": {set("appid", []string{intake.MarketplaceCaller}), 401},
	}
	for name, tt := range tests {
		claims := d.issuer.Claims(audience, intake.MarketplaceCaller)
		tt.change(claims)
		if status, _ := d.send(t, request{"POST", webhookPath, webhook, bearer(d.issuer.Token(t, claims))}); status != tt.status {
			t.Errorf("%s: %d", name, status)
		}
	}
	testenv.Equal(t, "readings of the key set", 1, d.issuer.Asked())
}

// Tokens are accepted for any spelling of ids in the settings; an impossible id is refused at the start.
func TestSpellingsOfIDs(t *testing.T) {
	t.Parallel()
	issuer := marketplacefake.NewIssuer(t, tenant)
	const app = "0ac4e6f0-1111-4222-8333-aabbccddeeff"
	spellings := func(id string) []string {
		return []string{id, strings.ToUpper(id), "{" + id + "}", " " + id + "\n", "urn:uuid:" + id, strings.ReplaceAll(id, "-", "")}
	}
	authorize := func(config intake.EntraConfig, audience string) error {
		config.Authority = issuer.Authority() + "/"
		e, err := intake.NewEntra(config)
		testenv.OK(t, err)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Header.Set("Authorization", "Bearer "+issuer.Token(t, issuer.Claims(audience, intake.MarketplaceCaller)))
		return e.Authorize(t.Context(), r)
	}
	for i, setting := range spellings(app) {
		for _, audience := range []string{app, "api://" + app, "api://" + strings.ToUpper(app), "api://" + app + "/"} {
			config := intake.EntraConfig{Tenant: spellings(tenant)[i], Audiences: []string{setting}, Callers: []string{spellings(intake.MarketplaceCaller)[i]}}
			if err := authorize(config, audience); err != nil {
				t.Errorf("%q, a token for %s: %v", setting, audience, err)
			}
		}
	}
	good := intake.EntraConfig{Tenant: tenant, Audiences: []string{"https://contoso.com/App"}, Callers: []string{intake.MarketplaceCaller}}
	if err := authorize(good, "https://Contoso.com/App/"); err != nil {
		t.Errorf("a URI: %v", err)
	}
	for _, audience := range []string{app, "https://contoso.com/app", "https://contoso.com/App/x"} {
		if err := authorize(good, audience); !errors.Is(err, engine.ErrUnauthorized) {
			t.Errorf("a token for %s: %v", audience, err)
		}
	}
	for _, id := range []string{"contoso.com", "00000000-0000-0000-0000-000000000000", `"` + app + `"`} {
		if _, err := intake.NewEntra(intake.EntraConfig{Tenant: id, Audiences: []string{app}, Callers: []string{id}}); err == nil || !strings.Contains(err.Error(), "tenant") || !strings.Contains(err.Error(), "caller") {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestForgedTokens(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	parts := strings.Split(d.issuer.Token(t, d.issuer.Claims(audience, intake.MarketplaceCaller)), ".")
	const none = "eyJhbGciOiJub25lIn0" // {"alg":"none"}
	const hs256 = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImtleS0xIn0"
	for _, token := range []string{"", "x", "a.b.c", parts[0] + "." + parts[1] + ".", none + "." + parts[1] + ".", hs256 + "." + parts[1] + "." + parts[2],
		parts[0] + "." + parts[1] + "x." + parts[2], strings.Join(parts, ".") + "." + parts[2], strings.Repeat("x", 20<<10)} {
		status, _ := d.send(t, request{"POST", webhookPath, webhook, bearer(token)})
		if status != http.StatusUnauthorized && status != http.StatusServiceUnavailable {
			t.Errorf("%.40q: %d", token, status)
		}
	}
	if n := d.issuer.Asked(); n > 1 || len(d.messages(t, provisioning.Queue)) != 0 {
		t.Errorf("the key set was read %d times, or a message was taken", n)
	}
}

// While the keys are unavailable, or a new one is unknown, the sender is asked to retry; then it is known.
func TestKeySet(t *testing.T) {
	t.Parallel()
	d := newDoor(t, through)
	check := func(what string, want int) {
		t.Helper()
		if status, _ := d.send(t, request{"POST", webhookPath, webhook, d.good(t, intake.MarketplaceCaller)}); status != want {
			t.Errorf("%s: %d", what, status)
		}
	}
	d.issuer.Down(true)
	check("without keys", http.StatusServiceUnavailable)
	d.issuer.Down(false)
	check("with keys again", http.StatusOK)
	d.issuer.Rotate(t)
	for range 3 {
		check("with a key that came up just now", http.StatusServiceUnavailable)
	}
	testenv.Equal(t, "readings of the key set", 2, d.issuer.Asked())
	d.later.Store(int64(time.Minute))
	check("a minute later", http.StatusOK)
}

func TestEntraConfig(t *testing.T) {
	t.Parallel()
	_, err := intake.NewEntra(intake.EntraConfig{Tenant: "common", Audiences: []string{""}})
	for _, part := range []string{"tenant", "audience", "caller"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}
