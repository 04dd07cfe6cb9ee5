package console

import (
	"net/http"
)

// policy lets pages only load the console's own styles, scripts and pictures, poll the console itself, and send forms
// to it: no inline script or style, no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secure sets the headers of every answer.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// ownPage reports whether a page of the console has sent a change. Browsers name the sending site; a request without
// that is not from a browser, and can use the API.
func ownPage(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return false
	}
	seen := r.Clone(r.Context())
	seen.Host = browserHost(r)
	return http.NewCrossOriginProtection().Check(seen) == nil
}

// browserHost returns the host in the browser's request, as reported by the Functions host in front of the program.
func browserHost(r *http.Request) string {
	if forwarded := r.Header.Values("X-Forwarded-Host"); len(forwarded) > 0 {
		return forwarded[len(forwarded)-1]
	}
	return r.Host
}
