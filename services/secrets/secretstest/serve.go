package secretstest

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var namePattern = regexp.MustCompile(`^[0-9a-zA-Z-]{1,127}$`)

// maxText is the limit of a value, in bytes.
const maxText = 25 * 1024

// bundle is a secret version as Key Vault writes it.
type bundle struct {
	ID          string            `json:"id"`
	Value       string            `json:"value,omitempty"`
	ContentType string            `json:"contentType,omitempty"`
	Attributes  attributes        `json:"attributes"`
	Tags        map[string]string `json:"tags,omitempty"`

	version string
}

type attributes struct {
	Enabled         bool   `json:"enabled"`
	Created         int64  `json:"created"`
	Updated         int64  `json:"updated"`
	RecoveryLevel   string `json:"recoveryLevel"`
	RecoverableDays int    `json:"recoverableDays"`
}

// change is the body of a PUT or PATCH; absent members stay unchanged.
type change struct {
	Value       *string           `json:"value"`
	ContentType *string           `json:"contentType"`
	Tags        map[string]string `json:"tags"`
	Attributes  struct {
		Enabled *bool `json:"enabled"`
	} `json:"attributes"`
}

// ServeHTTP implements http.Handler, for tests that serve this vault and another one on one server.
func (v *Vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer authorization="https://login.microsoftonline.com/%s", resource="%s"`, tenant, resource))
		refuse(w, http.StatusUnauthorized, "Unauthorized", "", "Request is missing a Bearer or PoP token.")
		return
	}
	fault := v.next(r.Method)
	if fault == nil {
		v.dispatch(w, r)
		return
	}
	if fault.Applied {
		v.dispatch(httptest.NewRecorder(), r)
	}
	if fault.Hang != nil {
		close(fault.Hang)
		<-r.Context().Done()
	}
	if fault.Status == 0 {
		// net/http's way to drop a connection without an answer.
		panic(http.ErrAbortHandler)
	}
	if fault.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(fault.RetryAfter.Seconds()))))
		// Key Vault has whole seconds only; clients also read this header, and tests need not wait.
		w.Header().Set("x-ms-retry-after-ms", strconv.FormatInt(fault.RetryAfter.Milliseconds(), 10))
	}
	refuse(w, fault.Status, fault.Code, fault.InnerCode, fault.Message)
}

// dispatch finds the operation of a request.
func (v *Vault) dispatch(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.URL.Query().Get("api-version") == "" || len(parts) < 2 || len(parts) > 3 || parts[0] != "secrets" || !namePattern.MatchString(parts[1]) {
		refuse(w, http.StatusBadRequest, "BadParameter", "", "Not a request of the secrets API.")
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case r.Method == http.MethodPut && len(parts) == 2:
		v.set(w, r, parts[1])
	case r.Method == http.MethodGet && len(parts) == 3 && parts[2] == "versions":
		v.list(w, r, parts[1])
	case r.Method == http.MethodGet && len(parts) == 3:
		v.get(w, parts[1], parts[2])
	case r.Method == http.MethodPatch && len(parts) == 3:
		v.update(w, r, parts[1], parts[2])
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "", "Not a request that this vault knows.")
	}
}

// set adds a version.
func (v *Vault) set(w http.ResponseWriter, r *http.Request, name string) {
	body, ok := readChange(w, r)
	if !ok {
		return
	}
	if body.Value == nil || len(*body.Value) > maxText || !tagsFit(body.Tags) {
		refuse(w, http.StatusBadRequest, "BadParameter", "", "The value or a tag is missing or too long.")
		return
	}
	s := v.secrets[strings.ToLower(name)]
	if s == nil {
		s = &secret{}
		v.secrets[strings.ToLower(name)] = s
	}
	if s.deleted {
		refuse(w, http.StatusConflict, "Conflict", "ObjectIsDeletedButRecoverable", "Secret "+name+" is currently in a deleted but recoverable state.")
		return
	}
	var id [16]byte
	rand.Read(id[:]) // never fails
	now := v.unixNow()
	b := &bundle{
		version: hex.EncodeToString(id[:]), Value: *body.Value, Tags: maps.Clone(body.Tags),
		Attributes: attributes{Enabled: true, Created: now, Updated: now, RecoveryLevel: "Recoverable+Purgeable", RecoverableDays: 90},
	}
	b.ID = fmt.Sprintf("https://%s/secrets/%s/%s", r.Host, name, b.version)
	b.change(body)
	s.versions = append(s.versions, b)
	slices.SortFunc(s.versions, func(a, b *bundle) int { return strings.Compare(a.version, b.version) })
	answer(w, b)
}

// list returns a page of versions; for a missing secret it is empty.
func (v *Vault) list(w http.ResponseWriter, r *http.Request, name string) {
	page := struct {
		Value    []bundle `json:"value"`
		NextLink *string  `json:"nextLink"`
	}{Value: []bundle{}}
	after := r.URL.Query().Get("$skiptoken")
	if s := v.secrets[strings.ToLower(name)]; s != nil && !s.deleted {
		for _, b := range s.versions {
			if b.version <= after {
				continue
			}
			if len(page.Value) == pageSize {
				next := fmt.Sprintf("https://%s/secrets/%s/versions?api-version=%s&$skiptoken=%s&maxresults=%d",
					r.Host, name, r.URL.Query().Get("api-version"), page.Value[pageSize-1].version, pageSize)
				page.NextLink = &next
				break
			}
			page.Value = append(page.Value, b.withoutValue())
		}
	}
	answer(w, page)
}

// get returns a version with its value.
func (v *Vault) get(w http.ResponseWriter, name, version string) {
	b := v.find(w, name, version)
	if b == nil {
		return
	}
	if !b.Attributes.Enabled {
		refuse(w, http.StatusForbidden, "Forbidden", "SecretDisabled", "Operation get is not allowed on a disabled secret.")
		return
	}
	answer(w, b)
}

// update changes a version's attributes and tags.
func (v *Vault) update(w http.ResponseWriter, r *http.Request, name, version string) {
	body, ok := readChange(w, r)
	if !ok {
		return
	}
	b := v.find(w, name, version)
	if b == nil {
		return
	}
	if body.Tags != nil {
		b.Tags = maps.Clone(body.Tags)
	}
	b.change(body)
	b.Attributes.Updated = v.unixNow()
	answer(w, b.withoutValue())
}

// find looks a version up, or refuses.
func (v *Vault) find(w http.ResponseWriter, name, version string) *bundle {
	if s := v.secrets[strings.ToLower(name)]; s != nil && !s.deleted {
		for _, b := range s.versions {
			if b.version == version {
				return b
			}
		}
	}
	refuse(w, http.StatusNotFound, "SecretNotFound", "", "A secret with (name/id) "+name+"/"+version+" was not found in this key vault.")
	return nil
}

// change applies a body's members besides value and tags.
func (b *bundle) change(body change) {
	if body.ContentType != nil {
		b.ContentType = *body.ContentType
	}
	if body.Attributes.Enabled != nil {
		b.Attributes.Enabled = *body.Attributes.Enabled
	}
}

// withoutValue returns the form of a version in lists and updates.
func (b *bundle) withoutValue() bundle {
	shown := *b
	shown.Value = ""
	return shown
}

// tagsFit checks tags against Key Vault's limits.
func tagsFit(tags map[string]string) bool {
	for name, text := range tags {
		if name == "" || utf8.RuneCountInString(name) > 256 || utf8.RuneCountInString(text) > 256 {
			return false
		}
	}
	return len(tags) <= 15
}

// readChange decodes a body, or refuses.
func readChange(w http.ResponseWriter, r *http.Request) (change, bool) {
	var body change
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, "BadParameter", "", "The body is not JSON.")
		return body, false
	}
	return body, true
}

// answer writes a document.
func answer(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	// Ignore a client that disconnected.
	_ = json.NewEncoder(w).Encode(document)
}

// refuse writes an error document.
func refuse(w http.ResponseWriter, status int, code, inner, message string) {
	type errorText struct {
		Code    string     `json:"code"`
		Message string     `json:"message,omitempty"`
		Inner   *errorText `json:"innererror,omitempty"`
	}
	text := errorText{Code: code, Message: message}
	if inner != "" {
		text.Inner = &errorText{Code: inner}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]errorText{"error": text})
}
