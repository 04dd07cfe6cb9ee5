package certificatestest

import (
	"crypto"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/services/certificates"
)

var namePattern = regexp.MustCompile(`^[0-9a-zA-Z-]{1,127}$`)

// version is a certificate version.
type version struct {
	id      string
	serial  int // in the order of merges
	chain   [][]byte
	leaf    *x509.Certificate
	key     crypto.Signer
	tags    map[string]string
	enabled bool
	created int64
}

// pending is a pending request.
type pending struct {
	id  string
	csr []byte
	key crypto.Signer
}

// attributes are those of a version, as Key Vault writes them.
type attributes struct {
	Enabled       bool   `json:"enabled"`
	NotBefore     int64  `json:"nbf,omitempty"`
	Expires       int64  `json:"exp,omitempty"`
	Created       int64  `json:"created"`
	Updated       int64  `json:"updated"`
	RecoveryLevel string `json:"recoveryLevel,omitempty"`
}

// bundle is a version, as Key Vault writes it.
type bundle struct {
	ID         string            `json:"id"`
	SID        string            `json:"sid,omitempty"`
	Thumbprint string            `json:"x5t,omitempty"`
	CER        string            `json:"cer,omitempty"`
	Attributes attributes        `json:"attributes"`
	Tags       map[string]string `json:"tags,omitempty"`
}

// operation is a pending request, as Key Vault writes it.
type operation struct {
	ID     string `json:"id"`
	Issuer struct {
		Name string `json:"name"`
	} `json:"issuer"`
	CSR           string `json:"csr"`
	Cancel        bool   `json:"cancellation_requested"`
	Status        string `json:"status"`
	StatusDetails string `json:"status_details"`
	RequestID     string `json:"request_id"`
}

// body is the body of this API's requests.
type body struct {
	Policy struct {
		Issuer struct {
			Name string `json:"name"`
		} `json:"issuer"`
		KeyProperties struct {
			KeyType string `json:"kty"`
			Curve   string `json:"crv"`
			Size    int    `json:"key_size"`
		} `json:"key_props"`
		X509 struct {
			Subject string `json:"subject"`
			Names   struct {
				DNS []string `json:"dns_names"`
			} `json:"sans"`
			ValidityMonths int `json:"validity_months"`
		} `json:"x509_props"`
	} `json:"policy"`
	X5C        []string          `json:"x5c"`
	Tags       map[string]string `json:"tags"`
	Attributes struct {
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
	fault := v.next(r)
	if fault == nil {
		v.dispatch(w, r)
		return
	}
	if fault.Applied {
		v.dispatch(httptest.NewRecorder(), r)
	}
	if fault.Status == 0 {
		// net/http's way to drop a connection without an answer.
		panic(http.ErrAbortHandler)
	}
	refuse(w, fault.Status, fault.Code, fault.InnerCode, fault.Message)
}

// dispatch finds the operation of a request.
func (v *Vault) dispatch(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.URL.Query().Get("api-version") == "" || len(parts) < 3 || parts[0] != "certificates" || !namePattern.MatchString(parts[1]) {
		refuse(w, http.StatusBadRequest, "BadParameter", "", "Not a request of the certificates API.")
		return
	}
	var in body
	if r.Method == http.MethodPost || r.Method == http.MethodPatch {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			refuse(w, http.StatusBadRequest, "BadParameter", "", "The body is not JSON.")
			return
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	c, name, what := v.certificate(parts[1]), parts[1], r.Method+" "+strings.Join(parts[2:], "/")
	switch {
	case c.deleted && r.Method == http.MethodPost:
		refuse(w, http.StatusConflict, "Conflict", "ObjectIsDeletedButRecoverable", "Certificate "+name+" is currently in a deleted but recoverable state.")
	case what == "POST create":
		v.create(w, r, c, name, in)
	case what == "GET pending" || what == "DELETE pending":
		v.showPending(w, r, c, name)
	case what == "POST pending/merge":
		v.merge(w, r, c, name, in)
	case what == "GET versions":
		v.list(w, r, c, name)
	case len(parts) == 3 && (r.Method == http.MethodGet || r.Method == http.MethodPatch):
		v.one(w, r, c, name, parts[2], in)
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "", "Not a request that this vault knows.")
	}
}

// create makes a key and a signing request.
func (v *Vault) create(w http.ResponseWriter, r *http.Request, c *certificate, name string, in body) {
	p := in.Policy
	subject, named := strings.CutPrefix(p.X509.Subject, "CN=")
	type properties struct {
		kty, crv string
		size     int
	}
	// Key Vault's documented properties of certificates, for the types that are used here.
	of, known := map[properties]certificates.KeyType{
		{"EC", "P-256", 0}: certificates.ECP256, {"EC", "P-384", 0}: certificates.ECP384, {"RSA", "", 2048}: certificates.RSA2048,
		{"RSA", "", 3072}: certificates.RSA3072, {"RSA", "", 4096}: certificates.RSA4096,
	}[properties{p.KeyProperties.KeyType, p.KeyProperties.Curve, p.KeyProperties.Size}]
	if p.Issuer.Name != "Unknown" || !known || !named || len(subject) > 64 || len(p.X509.Names.DNS) == 0 || p.X509.ValidityMonths < 1 {
		refuse(w, http.StatusBadRequest, "BadParameter", "", "The policy is not one that this vault knows.")
		return
	}
	if c.pending != nil {
		refuse(w, http.StatusConflict, "Conflict", "", "A new key vault certificate can not be created or imported while a pending key vault certificate's status is inProgress.")
		return
	}
	key, err := of.Generate()
	if err == nil {
		var csr []byte
		csr, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: subject}, DNSNames: p.X509.Names.DNS}, key)
		c.pending = &pending{id: newID(), csr: csr, key: key}
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "InternalError", "", err.Error())
		return
	}
	answer(w, http.StatusAccepted, describePending(r, c.pending, name))
}

// showPending returns, and on DELETE drops, the pending request.
func (v *Vault) showPending(w http.ResponseWriter, r *http.Request, c *certificate, name string) {
	if c.pending == nil {
		refuse(w, http.StatusNotFound, "PendingCertificateNotFound", "", "Pending certificate not found: "+name)
		return
	}
	answer(w, http.StatusOK, describePending(r, c.pending, name))
	if r.Method == http.MethodDelete {
		c.pending = nil
	}
}

// merge makes a version.
func (v *Vault) merge(w http.ResponseWriter, r *http.Request, c *certificate, name string, in body) {
	if c.pending == nil {
		refuse(w, http.StatusNotFound, "PendingCertificateNotFound", "", "Pending certificate not found: "+name)
		return
	}
	var chain [][]byte
	for _, text := range in.X5C {
		der, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			refuse(w, http.StatusBadRequest, "BadParameter", "", "x5c is not base64.")
			return
		}
		chain = append(chain, der)
	}
	if len(chain) == 0 {
		refuse(w, http.StatusBadRequest, "BadParameter", "", "x5c is missing.")
		return
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil || !belongs(c.pending.key, leaf) {
		refuse(w, http.StatusBadRequest, "BadParameter", "", "The public key of the end-entity certificate in the specified X.509 certificate content does not match the public part of the specified private key.")
		return
	}
	made := &version{id: c.pending.id, serial: len(c.versions) + 1, chain: chain, leaf: leaf, key: c.pending.key, tags: in.Tags,
		enabled: in.Attributes.Enabled == nil || *in.Attributes.Enabled, created: v.now().Unix()}
	c.pending = nil
	c.versions = append(c.versions, made)
	slices.SortFunc(c.versions, func(a, b *version) int { return strings.Compare(a.id, b.id) })
	answer(w, http.StatusCreated, describe(r, made, name, true))
}

// belongs reports whether a certificate is for a key.
func belongs(key crypto.Signer, leaf *x509.Certificate) bool {
	public, ok := key.Public().(interface {
		Equal(other crypto.PublicKey) bool
	})
	return ok && public.Equal(leaf.PublicKey)
}

// list returns a page of versions; the pending request is among them, as one without a certificate.
func (v *Vault) list(w http.ResponseWriter, r *http.Request, c *certificate, name string) {
	all := []bundle{}
	if !c.deleted {
		for _, one := range c.versions {
			all = append(all, describe(r, one, name, false))
		}
		if c.pending != nil {
			all = append(all, bundle{ID: address(r, name, c.pending.id), Attributes: attributes{Created: v.now().Unix()}})
		}
	}
	slices.SortFunc(all, func(a, b bundle) int { return strings.Compare(a.ID, b.ID) })
	after := r.URL.Query().Get("$skiptoken")
	from := slices.IndexFunc(all, func(b bundle) bool { return b.ID > after })
	if from < 0 {
		from = len(all)
	}
	page := struct {
		Value    []bundle `json:"value"`
		NextLink *string  `json:"nextLink"`
	}{Value: all[from:min(from+pageSize, len(all))]}
	if from+pageSize < len(all) {
		next := fmt.Sprintf("https://%s%s?api-version=%s&$skiptoken=%s", r.Host, r.URL.Path, r.URL.Query().Get("api-version"), page.Value[pageSize-1].ID)
		page.NextLink = &next
	}
	answer(w, http.StatusOK, page)
}

// one returns a version, and on PATCH changes it.
func (v *Vault) one(w http.ResponseWriter, r *http.Request, c *certificate, name, id string, in body) {
	at := slices.IndexFunc(c.versions, func(one *version) bool { return one.id == id })
	if at < 0 || c.deleted {
		refuse(w, http.StatusNotFound, "CertificateNotFound", "", "A certificate with (name/id) "+name+"/"+id+" was not found in this key vault.")
		return
	}
	if r.Method == http.MethodPatch && in.Attributes.Enabled != nil {
		c.versions[at].enabled = *in.Attributes.Enabled
	}
	answer(w, http.StatusOK, describe(r, c.versions[at], name, true))
}

// describe returns the JSON form of a version, in lists without the certificate itself.
func describe(r *http.Request, one *version, name string, whole bool) bundle {
	sum := sha1.Sum(one.leaf.Raw) // Key Vault's thumbprint
	b := bundle{ID: address(r, name, one.id), Thumbprint: base64.RawURLEncoding.EncodeToString(sum[:]), Tags: one.tags,
		Attributes: attributes{Enabled: one.enabled, NotBefore: one.leaf.NotBefore.Unix(), Expires: one.leaf.NotAfter.Unix(),
			Created: one.created, Updated: one.created, RecoveryLevel: "Recoverable+Purgeable"}}
	if whole {
		b.CER, b.SID = base64.StdEncoding.EncodeToString(one.leaf.Raw), strings.Replace(b.ID, "/certificates/", "/secrets/", 1)
	}
	return b
}

// describePending returns the JSON form of a pending request.
func describePending(r *http.Request, p *pending, name string) operation {
	o := operation{ID: fmt.Sprintf("https://%s/certificates/%s/pending", r.Host, name), CSR: base64.StdEncoding.EncodeToString(p.csr), Status: "inProgress",
		StatusDetails: "Pending certificate created. Please Perform Merge to complete the request.", RequestID: p.id}
	o.Issuer.Name = "Unknown"
	return o
}

func address(r *http.Request, name, id string) string {
	return fmt.Sprintf("https://%s/certificates/%s/%s", r.Host, name, id)
}

func newID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// answer writes a document.
func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
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
	answer(w, status, map[string]errorText{"error": text})
}
