package console

import (
	"net/http"
)

// policy lets pages load the console's own styles, scripts and pictures, ask the console itself for news, send forms to it, and nothing else:
// no script or style of a page itself, no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secure sets the headers that every answer has.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// ownPage says whether a page of the console has sent a change. Browsers say which site sends; what says nothing is no browser,
// and has the API.
func ownPage(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return false
	}
	seen := r.Clone(r.Context())
	seen.Host = browserHost(r)
	return http.NewCrossOriginProtection().Check(seen) == nil
}

// browserHost is the host that the browser has asked: the Functions host, which stands before the program, says it.
func browserHost(r *http.Request) string {
	if forwarded := r.Header.Values("X-Forwarded-Host"); len(forwarded) > 0 {
		return forwarded[len(forwarded)-1]
	}
	return r.Host
}
