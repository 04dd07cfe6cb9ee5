package graphfake

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// password is a passwordCredential as Graph writes it. Only the answer to addPassword has the value.
type password struct {
	DisplayName   string    `json:"displayName"`
	EndDateTime   time.Time `json:"endDateTime"`
	Hint          string    `json:"hint"`
	KeyID         string    `json:"keyId"`
	SecretText    *string   `json:"secretText"`
	StartDateTime time.Time `json:"startDateTime"`

	value string
}

var applicationPath = regexp.MustCompile(`^/v1\.0/applications\(appId='([^']+)'\)(|/addPassword|/removePassword)$`)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := s.next(r.URL.Path)
	if fault == nil {
		s.dispatch(w, r)
		return
	}
	if fault.Applied {
		s.dispatch(httptest.NewRecorder(), r)
	}
	if fault.Status == 0 {
		panic(http.ErrAbortHandler) // net/http's way to drop a connection without an answer
	}
	if fault.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(fault.RetryAfter.Seconds())))
	}
	if fault.Body != "" {
		w.WriteHeader(fault.Status)
		_, _ = w.Write([]byte(fault.Body)) // ignore a client that disconnected
		return
	}
	refuse(w, fault.Status, fault.Code, fault.Message)
}

// dispatch finds the operation of a request.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPost && r.URL.Path == "/"+Tenant+"/oauth2/v2.0/token" {
		s.token(w, r)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token") {
		refuseLogin(w, http.StatusBadRequest, "invalid_request", 90002, "Tenant not found.")
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+token {
		refuse(w, http.StatusUnauthorized, "InvalidAuthenticationToken", "Access token is empty.")
		return
	}
	parts := applicationPath.FindStringSubmatch(r.URL.Path)
	if parts == nil {
		refuse(w, http.StatusBadRequest, "BadRequest", "Resource not found for the segment.")
		return
	}
	app := s.applications[parts[1]]
	if app == nil || s.now().Before(app.created.Add(s.FoundAfter)) {
		refuse(w, http.StatusNotFound, "Request_ResourceNotFound", "Resource '"+parts[1]+"' does not exist or one of its queried reference-property objects are not present.")
		return
	}
	switch {
	case r.Method == http.MethodGet && parts[2] == "":
		s.list(w, app)
	case r.Method == http.MethodPost && parts[2] == "/addPassword":
		s.addPassword(w, r, app)
	case r.Method == http.MethodPost && parts[2] == "/removePassword":
		s.removePassword(w, r, app)
	default:
		refuse(w, http.StatusMethodNotAllowed, "Request_BadRequest", "Specified HTTP method is not allowed for the request target.")
	}
}

// list returns the replicated passwords, newest first: Graph promises no order.
func (s *Server) list(w http.ResponseWriter, app *application) {
	shown := []*password{}
	for _, p := range slices.Backward(app.passwords) {
		if !s.now().Before(p.StartDateTime.Add(s.ListedAfter)) {
			shown = append(shown, p)
		}
	}
	answer(w, http.StatusOK, map[string]any{"@odata.context": "https://graph.microsoft.com/v1.0/$metadata#applications(passwordCredentials)/$entity",
		"passwordCredentials": shown})
}

func (s *Server) addPassword(w http.ResponseWriter, r *http.Request, app *application) {
	var body struct {
		PasswordCredential struct {
			DisplayName string    `json:"displayName"`
			EndDateTime time.Time `json:"endDateTime"`
		} `json:"passwordCredential"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		refuse(w, http.StatusBadRequest, "Request_BadRequest", "The body is not JSON.")
		return
	}
	if s.Limit > 0 && len(app.passwords) >= s.Limit {
		refuse(w, http.StatusBadRequest, "Request_BadRequest", fmt.Sprintf("You can only add a maximum of %d encrypted credentials.", s.Limit))
		return
	}
	p := *s.add(app, body.PasswordCredential.DisplayName, body.PasswordCredential.EndDateTime)
	p.SecretText = &p.value
	answer(w, http.StatusOK, p)
}

// add makes a password.
func (s *Server) add(app *application, displayName string, end time.Time) *password {
	random := make([]byte, 30)
	rand.Read(random) // never fails
	p := &password{DisplayName: displayName, KeyID: uuid.NewString(), StartDateTime: s.now(), EndDateTime: end,
		value: base64.RawURLEncoding.EncodeToString(random)[:37] + "~.q"}
	if end.IsZero() {
		p.EndDateTime = p.StartDateTime.AddDate(2, 0, 0)
	}
	p.Hint = p.value[:3]
	app.passwords = append(app.passwords, p)
	s.values = append(s.values, p.value)
	return p
}

func (s *Server) removePassword(w http.ResponseWriter, r *http.Request, app *application) {
	var body struct {
		KeyID string `json:"keyId"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		refuse(w, http.StatusBadRequest, "Request_BadRequest", "The body is not JSON.")
		return
	}
	at := slices.IndexFunc(app.passwords, func(p *password) bool { return p.KeyID == body.KeyID })
	if at < 0 {
		refuse(w, http.StatusBadRequest, "Request_BadRequest", "No credentials found to be removed.")
		return
	}
	app.passwords = slices.Delete(app.passwords, at, at+1)
	w.WriteHeader(http.StatusNoContent)
}

// token is the token endpoint for client credentials.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	form := url.Values{}
	if r.ParseForm() == nil {
		form = r.PostForm
	}
	if form.Get("grant_type") != "client_credentials" || form.Get("scope") == "" {
		refuseLogin(w, http.StatusBadRequest, "invalid_request", 900144, "The request body must contain a parameter that it lacks.")
		return
	}
	app := s.applications[form.Get("client_id")]
	if app == nil {
		refuseLogin(w, http.StatusBadRequest, "unauthorized_client", 700016, "The application was not found in the directory.")
		return
	}
	if app.disabled {
		refuseLogin(w, http.StatusUnauthorized, "unauthorized_client", 7000112, "The application is disabled.")
		return
	}
	value := form.Get("client_secret")
	switch err := s.accepted(app, value); {
	case errors.Is(err, errExpired):
		refuseLogin(w, http.StatusUnauthorized, "invalid_client", 7000222, "The provided client secret keys are expired.")
	case err != nil:
		// The real one does not quote its input. This one does, so that tests detect code that passes texts on.
		refuseLogin(w, http.StatusUnauthorized, "invalid_client", 7000215, "Invalid client secret provided: "+value)
	default:
		answer(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3599, "access_token": LoginToken})
	}
}

var (
	errUnknown = errors.New("unknown value")
	errExpired = errors.New("expired value")
)

// accepted returns nil when a value has replicated to the login.
func (s *Server) accepted(app *application, value string) error {
	at := slices.IndexFunc(app.passwords, func(p *password) bool { return p.value == value })
	switch {
	case at < 0 || s.now().Before(app.passwords[at].StartDateTime.Add(s.AcceptedAfter)):
		return errUnknown
	case !s.now().Before(app.passwords[at].EndDateTime):
		return errExpired
	default:
		return nil
	}
}

// forms returns the possible spellings of a value.
func forms(value string) []string {
	return []string{value, base64.RawStdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
		hex.EncodeToString([]byte(value)), url.QueryEscape(value)}
}

func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // ignore a client that disconnected
}

// refuse answers as Graph does.
func refuse(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"code": code, "message": message,
		"innerError": map[string]any{"request-id": uuid.NewString()}}})
}

// refuseLogin answers as the token endpoint does.
func refuseLogin(w http.ResponseWriter, status int, kind string, code int, description string) {
	answer(w, status, map[string]any{"error": kind, "error_codes": []int{code},
		"error_description": fmt.Sprintf("AADSTS%d: %s Trace ID: %s", code, description, uuid.NewString())})
}
