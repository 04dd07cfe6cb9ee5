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
	if status := headStatus(r); status != 0 {
		w.WriteHeader(status)
		return
	}
	if why := h.refusal(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	path, ok := decodePath(requestPath(r))
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.Method = method(r)
	h.route(w, r, path)
}

// route dispatches a request by its decoded path. An unknown method is a 404 too, not a 405.
func (h *Host) route(w http.ResponseWriter, r *http.Request, path string) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case strings.EqualFold(first, "admin"):
		h.serveAdmin(w, r, path)
		return
	case strings.EqualFold(first, "runtime"):
		h.serveExtension(w, r, rest)
		return
	case path == "/":
		_, _ = io.WriteString(w, "The local Functions host is up and running.\n")
		return
	}
	for _, route := range h.routes {
		parameters, ok := route.match(path)
		if ok && route.function.allows(r.Method) {
			h.serveFunction(w, r, route.function, call{path: path, parameters: parameters})
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

// serveExtension answers for the webhooks of extensions, which do not exist here: the real host requires a key first.
func (h *Host) serveExtension(w http.ResponseWriter, r *http.Request, rest string) {
	if first, _, _ := strings.Cut(rest, "/"); strings.EqualFold(first, "webhooks") && !h.authorized(r, authAdmin) {
		unauthorized(w)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

// call is the routing result of a request.
type call struct {
	path       string // decoded
	parameters map[string]string
}

func (h *Host) serveFunction(w http.ResponseWriter, r *http.Request, f *function, c call) {
	if !h.authorized(r, f.trigger.AuthLevel) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var abort bool
	h.observed(f, func(id string) (err error) {
		switch {
		case f.plainHTTP() && h.host.proxy:
			abort, err = h.proxy(w, r, c.path, id)
		case f.plainHTTP() && h.host.forward:
			err = h.forward(w, r, id)
		default:
			err = h.serveJSON(w, r, f, id, c.parameters)
		}
		if err != nil {
			err = fmt.Errorf("function %s: %w", f.name, err)
		}
		return err
	})
	if abort {
		// Half of an answer is out: only cutting the connection signals that to the client.
		panic(http.ErrAbortHandler)
	}
}

// authorized checks the key in the header, otherwise in the query; without a key to check against every caller is an
// administrator.
func (h *Host) authorized(r *http.Request, level string) bool {
	if h.config.FunctionKey == "" || level == authAnonymous {
		return true
	}
	given := r.URL.Query().Get("code")
	if values := r.Header.Values("x-functions-key"); len(values) > 0 {
		given = values[0]
	}
	return subtle.ConstantTimeCompare([]byte(given), []byte(h.config.FunctionKey)) == 1
}

// unauthorized is the answer of the host's own endpoints to a request without their key.
func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	w.WriteHeader(http.StatusUnauthorized)
}
