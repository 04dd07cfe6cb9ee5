package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
)

// cookie is the name of the sign-in cookie on a developer's machine.
const cookie = "roundhouse-console"

// signsInHere reports whether users sign in with the key of the local host.
func (c *Console) signsInHere() bool {
	return c.config.Control.Development && c.config.Control.LocalKey != ""
}

// pass returns the cookie's value for a host: it represents the key to the console at that host, and is not a key
// itself.
func (c *Console) pass(host string) string {
	mac := hmac.New(sha256.New, []byte(c.config.Control.LocalKey))
	mac.Write([]byte("roundhouse console\n" + host))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// signedInHere reports whether a browser has the cookie of this host.
func (c *Console) signedInHere(r *http.Request) bool {
	if !c.signsInHere() {
		return false
	}
	given, err := r.Cookie(cookie)
	return err == nil && hmac.Equal([]byte(given.Value), []byte(c.pass(browserHost(r))))
}

// signInHere removes the key from the address, and sets a cookie in its place if the key is correct. Cookies are sent
// to all ports of a host, so other programs of this machine may see this one: it opens the console, not the API.
func (c *Console) signInHere(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if !c.config.Control.IsLocalKey(query.Get("code")) {
		v := &visit{console: c, r: r}
		c.show(w, r, v, c.outside(v, &apiError{Status: http.StatusUnauthorized, Code: "Unauthenticated", Message: "The code of the address is not the key of this app."}))
		return
	}
	query.Del("code")
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: c.pass(browserHost(r)), Path: Root, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", (&url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: query.Encode()}).String())
	w.WriteHeader(http.StatusSeeOther)
}

// outsidePage gives instructions to an unidentified caller.
type outsidePage struct {
	Message Text
	// SignIn is the platform's sign-in address, "" without one. Local means that this is a developer's machine.
	SignIn string
	Local  bool
}

// outside returns the page for an unidentified caller.
func (c *Console) outside(v *visit, err error) page {
	code := status(err)
	if code != http.StatusUnauthorized && code != http.StatusForbidden {
		return failedPage(err)
	}
	p := failedPage(err)
	shown := outsidePage{Message: Text(err.Error()), Local: c.config.Control.Development}
	if c.config.Control.EasyAuth && code == http.StatusUnauthorized {
		shown.SignIn = "/.auth/login/aad?post_login_redirect_uri=" + url.QueryEscape(v.r.URL.RequestURI())
	}
	return page{template: "outside", title: "Sign in", status: p.status, code: p.code, model: shown}
}
