package outbound

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.uber.org/goleak"

	"github.com/vibedata/roundhouse/internal/faults"
	"github.com/vibedata/roundhouse/internal/testenv"
	"github.com/vibedata/roundhouse/services/secrets"
	"github.com/vibedata/roundhouse/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// identity returns a token that contains its audience.
type identity struct{ err error }

const tokenPrefix = "token-of-the-app-for:"

func (i identity) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: tokenPrefix + strings.Join(o.Scopes, ","), ExpiresOn: time.Now().Add(time.Hour)}, i.err
}

// world is a vault, a clock and a log, with their clients.
type world struct {
	*Clients
	vault *secrets.Development
	plan  *faults.Plan
	log   bytes.Buffer
	roots *x509.CertPool

	mu  sync.Mutex
	now time.Time
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{plan: &faults.Plan{}, now: time.Now(), roots: x509.NewCertPool()}
	store := tables.NewMemory()
	w.vault = secrets.NewDevelopment(faults.Tables(store, w.plan.Intercept))
	testenv.OK(t, store.CreateTable(t.Context(), secrets.DevelopmentTable))
	config := Config{Identity: func() (azcore.TokenCredential, error) { return identity{}, nil }, Vault: w.vault, Roots: w.roots,
		Log: slog.New(slog.NewTextHandler(&w.log, nil)), Now: func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.now
		}}
	for _, c := range change {
		c(&config)
	}
	var err error
	if w.Clients, err = New(config); err != nil {
		t.Fatal(err)
	}
	return w
}

// pass lets time pass, so that cached values are looked up again.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// store adds a version, and disables earlier ones: the vault orders versions of one second randomly.
func (w *world) store(t *testing.T, name, value string) {
	t.Helper()
	before := testenv.Must(w.vault.Versions(t.Context(), name))(t)
	for _, v := range before {
		testenv.OK(t, w.vault.Disable(t.Context(), name, v.Version))
	}
	testenv.Must(w.vault.Add(t.Context(), name, []byte(value), nil))(t)
}

// client returns the client of a receiver.
func (w *world) client(t *testing.T, to *receiver, a Auth) *http.Client {
	t.Helper()
	c := testenv.Must(w.Client("TARGET", to.URL+"/secret-path", a))(t)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// received is a request as received.
type received struct {
	header      http.Header
	body        string
	certificate string // fingerprint
}

// receiver keeps its requests.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	got  []received
	turn http.HandlerFunc // replaces its answer
}

// newReceiver listens with TLS, trusted by the world.
func (w *world) newReceiver(t *testing.T, configure func(*tls.Config)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(r)
	r.Server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	r.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if configure != nil {
		configure(r.TLS)
	}
	r.StartTLS()
	t.Cleanup(r.Close)
	w.roots.AddCert(r.Certificate())
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	body, _ := io.ReadAll(in.Body)
	one := received{header: in.Header.Clone(), body: string(body)}
	if in.TLS != nil && len(in.TLS.PeerCertificates) > 0 {
		one.certificate = fingerprintOf(in.TLS.PeerCertificates[0].Raw)
	}
	r.mu.Lock()
	r.got = append(r.got, one)
	turn := r.turn
	r.mu.Unlock()
	if turn != nil {
		turn(w, in)
	}
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

func (r *receiver) last(t *testing.T) received {
	t.Helper()
	got := r.all()
	if len(got) == 0 {
		t.Fatal("nothing came")
	}
	return got[len(got)-1]
}

func fingerprintOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// post sends a body under a key, and returns an error unless the answer is 200.
func post(t *testing.T, ctx context.Context, c *http.Client, url, key, body string) error {
	t.Helper()
	req := testenv.Must(http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body)))(t)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("answer %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// verified checks a request against a secret, by the specification of Standard Webhooks: the signed content is id,
// timestamp and body with full stops between, and one of the signatures is v1 with the base64 of its HMAC-SHA256.
func verified(r received, secret []byte) bool {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(r.header.Get("Webhook-Id") + "." + r.header.Get("Webhook-Timestamp") + "." + r.body))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	at, err := strconv.ParseInt(r.header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 24*time.Hour {
		return false
	}
	for given := range strings.FieldsSeq(r.header.Get("Webhook-Signature")) {
		if given == want {
			return true
		}
	}
	return false
}

// issued returns a certificate with its key as PEM, and its fingerprint.
func issued(t *testing.T, name string) (text, fingerprint string, certificate *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	raw, err1 := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	encoded, err2 := x509.MarshalPKCS8PrivateKey(key)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if certificate, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	text = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})) + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
	return text, fingerprintOf(raw), certificate
}
