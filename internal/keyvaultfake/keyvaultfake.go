// Package keyvaultfake fakes a Key Vault, for tests with other processes, at an address like those of real vaults: the
// vaults of secretstest, certificatestest and keystest on one TLS server, which is reached through a proxy. So clients
// check the name in the vault's challenge as in production.
package keyvaultfake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/vibedata/roundhouse/services/certificates/certificatestest"
	"github.com/vibedata/roundhouse/services/keys/keystest"
	"github.com/vibedata/roundhouse/services/secrets/secretstest"
)

const (
	host = "roundhouse-tests.vault.azure.net"
	// URL is the address of the vault.
	URL = "https://" + host
)

// Server is the vault.
type Server struct {
	// Secrets, Certificates and Keys are its contents. They have their own addresses, too.
	Secrets      *secretstest.Vault
	Certificates *certificatestest.Vault
	Keys         *keystest.Vault

	proxy     *httptest.Server
	authority []byte // PEM
}

// Start starts a vault that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{Secrets: secretstest.NewVault(t), Certificates: certificatestest.NewVault(t), Keys: keystest.NewVault(t)}
	all := http.NewServeMux()
	all.Handle("/secrets/", s.Secrets)
	all.Handle("/certificates/", s.Certificates)
	all.Handle("/keys/", s.Keys)
	tunnels := &tunnels{conns: make(chan net.Conn), closed: make(chan struct{})}
	vault := httptest.NewUnstartedServer(all)
	vault.Listener.Close()
	vault.Listener, vault.TLS = tunnels, &tls.Config{Certificates: []tls.Certificate{s.certify(t)}, MinVersion: tls.VersionTLS12}
	vault.StartTLS()
	t.Cleanup(vault.Close)
	s.proxy = httptest.NewServer(tunnels)
	t.Cleanup(s.proxy.Close)
	return s
}

// certify makes the certificate of the vault.
func (s *Server) certify(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{host}}, key)
	if err != nil {
		t.Fatal(err)
	}
	chain := certificatestest.NewAuthority(t).Sign(t, request, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour))
	s.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain[len(chain)-1]})
	return tls.Certificate{Certificate: chain, PrivateKey: key}
}

// AuthorityPEM returns the root of the vault's certificate, for a file that another process trusts.
func (s *Server) AuthorityPEM() []byte { return s.authority }

// Proxy returns the address of the proxy, which forwards to the vault only.
func (s *Server) Proxy() string { return s.proxy.URL }

// Environment returns the variables with which a process finds the vault. Loopback addresses bypass the proxy.
func (s *Server) Environment() []string {
	return []string{"HTTPS_PROXY=" + s.proxy.URL, "NO_PROXY=localhost"}
}

// tunnels is a proxy, and the listener of the server behind it.
type tunnels struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// ServeHTTP implements http.Handler: the proxy.
func (u *tunnels) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || r.Host != host+":443" {
		http.Error(w, "this proxy leads to "+host+" only", http.StatusForbidden)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		conn.Close()
		return
	}
	select {
	case u.conns <- conn:
	case <-u.closed:
		conn.Close()
	}
}

// Accept implements net.Listener.
func (u *tunnels) Accept() (net.Conn, error) {
	select {
	case conn := <-u.conns:
		return conn, nil
	case <-u.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (u *tunnels) Close() error {
	u.once.Do(func() { close(u.closed) })
	return nil
}

// Addr implements net.Listener.
func (u *tunnels) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }
