package localhost

import (
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Levels of authorization, as function.json names them.
const (
	authAnonymous = "anonymous"
	authFunction  = "function"
	authAdmin     = "admin"
)

// ServeHTTP serves the functions under their routes, the admin endpoints and the landing page.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.enter() {
		http.Error(w, "the host is stopping", http.StatusServiceUnavailable)
		return
	}
	defer h.leave()
	if why := h.refusal(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	path := r.URL.EscapedPath()
	if first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); strings.EqualFold(first, "admin") {
		if !h.authorized(r, authAdmin) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.admin.ServeHTTP(w, r)
		return
	}
	for _, route := range h.routes {
		parameters, ok := route.match(path)
		// A method that no function takes is a 404 too, not a 405.
		if ok && route.function.allows(r.Method) {
			h.serveFunction(w, r, route.function, parameters)
			return
		}
	}
	if path == "/" {
		_, _ = io.WriteString(w, "The local Functions host is up and running.\n")
		return
	}
	http.NotFound(w, r)
}

func (h *Host) serveFunction(w http.ResponseWriter, r *http.Request, f *function, parameters map[string]string) {
	if !h.authorized(r, f.trigger.AuthLevel) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var abort bool
	h.observed(f, func(id string) (err error) {
		switch {
		case f.plainHTTP() && h.host.proxy:
			abort, err = h.proxy(w, r, id)
		case f.plainHTTP() && h.host.forward:
			err = h.forward(w, r, id)
		default:
			err = h.serveJSON(w, r, f, id, parameters)
		}
		if err != nil {
			err = fmt.Errorf("function %s: %w", f.name, err)
		}
		return err
	})
	if abort {
		// Half of an answer is out: only cutting the connection tells the client.
		panic(http.ErrAbortHandler)
	}
}

// authorized checks the key in the header or the query; without a key to check against everybody is an administrator.
func (h *Host) authorized(r *http.Request, level string) bool {
	if h.config.FunctionKey == "" || level == authAnonymous {
		return true
	}
	given := r.Header.Get("x-functions-key")
	if given == "" {
		given = r.URL.Query().Get("code")
	}
	return subtle.ConstantTimeCompare([]byte(given), []byte(h.config.FunctionKey)) == 1
}
