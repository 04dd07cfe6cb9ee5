package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

// Root is the path of the console.
const Root = "/api/console"

// maxForm bounds a form's body, in bytes: a form sends up to three for one of the 64 KiB that an answer to a task may
// have.
const maxForm = 256 << 10

// Config configures a Console.
type Config struct {
	// API answers the requests of pages, at its paths below /api. It receives the headers that identify the caller.
	// Required.
	API http.Handler
	// Control is the API's access control. The console takes the sign-in from it.
	Control access.Control
	// Now is the clock of the pages; nil means time.Now.
	Now func() time.Time
	// NewKey returns the idempotency key of a form; nil means a random one.
	NewKey func() string
}

// Console serves the pages below Root.
type Console struct {
	config Config
	assets *assets
	pages  *templates
	mux    *http.ServeMux
	days   days
	looks  looks
}

// New returns a console.
func New(c Config) (*Console, error) {
	if c.API == nil {
		return nil, errors.New("make the console: an API is needed")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewKey == nil {
		c.NewKey = rand.Text
	}
	out := &Console{config: c, mux: http.NewServeMux()}
	var err error
	if out.assets, err = builtAssets(); err == nil {
		out.pages, err = builtTemplates()
	}
	if err != nil {
		return nil, fmt.Errorf("make the console: %w", err)
	}
	for _, r := range out.routes() {
		out.mux.HandleFunc(r.Method+" "+pattern(r.Path), out.serve(out.visitor(r)))
	}
	out.mux.HandleFunc("GET "+Root+"/assets/{name...}", out.serveAsset)
	out.mux.HandleFunc("GET "+Root+"/assets", out.serveAsset) // the mux would redirect it to the path with a slash, which the router takes off
	out.mux.HandleFunc("/", out.serve(nowhere))
	return out, nil
}

// ServeHTTP answers a request of a browser.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	switch {
	case access.FromMachine(r.Context()): // addresses for machines have no console
		http.NotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "The console answers to GET, HEAD and POST.", http.StatusMethodNotAllowed)
	case r.Method == http.MethodPost && !ownPage(r):
		c.show(w, r, &visit{console: c, r: r}, refusedPage(http.StatusForbidden, "Forbidden", "This was sent by no page of the console. Open the page again, and send its form from there."))
	case r.Method == http.MethodGet && r.URL.Query().Has("code") && c.signsInHere():
		c.signInHere(w, r)
	default:
		most := int64(maxForm)
		if r.URL.Path == openPath {
			most = maxUpload
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
		c.mux.ServeHTTP(w, r)
	}
}

// visit is one request of a signed-in user.
type visit struct {
	console *Console
	r       *http.Request
	api     *client
	me      me
	// seen is the API's answers about the page's subject.
	seen *seen
}

// visitor makes the page of a visit, or leads elsewhere. Its error is one of the API, or of the console.
type visitor func(ctx context.Context, v *visit) (page, error)

// serve handles every request: it identifies the user, makes the page, and shows an error page on failure.
func (c *Console) serve(answer visitor) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{console: c, r: r, api: c.client(r), seen: &seen{}}
		err := v.api.get(r.Context(), "/api/me", nil, &v.me)
		if err != nil {
			c.show(w, r, v, c.outside(v, err))
			return
		}
		v.api.seen = v.seen // the user is not part of the page's subject
		p, err := answer(r.Context(), v)
		if err != nil {
			p = failedPage(err)
		}
		c.show(w, r, v, p)
	}
}

// nowhere answers other paths.
func nowhere(_ context.Context, v *visit) (page, error) {
	if v.r.Method == http.MethodPost {
		return refusedPage(http.StatusMethodNotAllowed, "MethodNotAllowed", "Nothing can be sent to this address."), nil
	}
	return refusedPage(http.StatusNotFound, "NotFound", "There is no page at this address."), nil
}

// pattern returns a path of a route in the form of net/http's router.
func pattern(path string) string {
	segments := strings.Split(path, "/")
	for n, s := range segments {
		if name, ok := strings.CutPrefix(s, ":"); ok {
			segments[n] = "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}
