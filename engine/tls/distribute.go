package tls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/services/outbound"
)

// handshakeTimeout bounds one check of a target.
const handshakeTimeout = 15 * time.Second

// Distributor notifies a target to fetch a version of a certificate from the store and to serve it. A notice may be
// repeated. Errors are ErrTarget, and others, after which it can be repeated.
type Distributor interface {
	Distribute(ctx context.Context, to Target, c Certificate) error
}

// DistributeInput names a target and the certificate to serve.
type DistributeInput struct {
	Target      Target      `json:"target"`
	Certificate Certificate `json:"certificate"`
	// Nobody means that the certificate has no targets, instead of a Target.
	Nobody bool `json:"nobody,omitempty"`
}

// noTargets is the note of a distribution without targets.
const noTargets = "no target is known to serve this certificate: nobody was told, and no version before it is disabled"

// DistributeOutput proves that a target serves a certificate.
type DistributeOutput struct {
	TargetID string `json:"targetId"`
	// Fingerprint and Serial are those of the certificate that the target presented.
	Fingerprint string `json:"fingerprint"`
	Serial      string `json:"serial"`
	// Told means that the target was notified; otherwise it already served the certificate.
	Told bool `json:"told"`
	// Sent describes the authentication of the notice, nil without a notice or when the client does not record it.
	Sent *outbound.Sent `json:"sent,omitempty"`
	// VerifiedAtUtc is when it presented the certificate.
	VerifiedAtUtc time.Time `json:"verifiedAtUtc"`
	// Note means that there are no targets; then only the name of the certificate is set.
	Note string `json:"note,omitempty"`
}

// Distribute makes sure that a target serves a certificate: it checks, notifies the target if needed, and checks
// again. ErrNotServed means that it does not serve it yet.
func (s *Steps) Distribute(ctx context.Context, in DistributeInput) (DistributeOutput, error) {
	if in.Nobody {
		return DistributeOutput{Fingerprint: in.Certificate.Fingerprint, Serial: in.Certificate.Serial, Note: noTargets}, nil
	}
	if in.Target.ID == "" || in.Target.Address == "" || in.Certificate.Fingerprint == "" || in.Certificate.Version == "" {
		return DistributeOutput{}, fmt.Errorf("distribute: %w: target id, address, certificate version and fingerprint are required", ErrInput)
	}
	out, err := s.look(ctx, in)
	if err == nil {
		// A previous attempt may have notified it.
		out.Sent = toldBefore(ctx)
		out.Told = out.Sent != nil
		return out, nil
	}
	recorded, last := outbound.Record(ctx)
	err = s.config.Distributor.Distribute(recorded, in.Target, in.Certificate)
	noteTold(ctx, last())
	if err != nil {
		return DistributeOutput{}, fmt.Errorf("tell target %s about certificate %s%s: %w", in.Target.ID, in.Certificate.Name, by(last()), err)
	}
	if out, err = s.look(ctx, in); err != nil {
		return DistributeOutput{}, fmt.Errorf("target %s was told about certificate %s version %s%s: %w", in.Target.ID, in.Certificate.Name, in.Certificate.Version, by(last()), err)
	}
	out.Told, out.Sent = true, last()
	return out, nil
}

// noteTold passes the notice of a target on to later attempts; nil passes on nothing.
func noteTold(ctx context.Context, sent *outbound.Sent) {
	if sent == nil {
		return
	}
	// Only an activity has later attempts, and its context ends it.
	_ = orchestrator.Heartbeat(ctx, sent)
}

// toldBefore returns the notice of a previous attempt, nil for none.
func toldBefore(ctx context.Context) *outbound.Sent {
	var sent outbound.Sent
	progress := orchestrator.Info(ctx).Progress
	if len(progress) == 0 || json.Unmarshal(progress, &sent) != nil {
		return nil
	}
	return &sent
}

// by describes the notice, for an attempt that does not see the target serve.
func by(sent *outbound.Sent) string {
	if sent == nil {
		return ""
	}
	return " (" + sent.String() + ")"
}

// look makes a handshake with a target.
func (s *Steps) look(ctx context.Context, in DistributeInput) (DistributeOutput, error) {
	served, err := handshake(ctx, in.Target, in.Certificate)
	if err != nil {
		return DistributeOutput{}, fmt.Errorf("%w: %w", ErrNotServed, err)
	}
	leaf := served[0]
	if got := fingerprint(leaf); got != in.Certificate.Fingerprint {
		return DistributeOutput{}, fmt.Errorf("%w: %s presents serial %s (until %s), not serial %s", ErrNotServed, in.Target.Address,
			leaf.SerialNumber.Text(16), leaf.NotAfter.UTC().Format(time.RFC3339), in.Certificate.Serial)
	}
	between := x509.NewCertPool()
	for _, c := range served[1:] {
		between.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: s.config.Roots, Intermediates: between, CurrentTime: s.config.Now()}); err != nil {
		return DistributeOutput{}, fmt.Errorf("%w: %s presents the certificate, but clients cannot verify it; it has to send the whole chain: %w", ErrNotServed, in.Target.Address, err)
	}
	return DistributeOutput{TargetID: in.Target.ID, Fingerprint: fingerprint(leaf), Serial: leaf.SerialNumber.Text(16), VerifiedAtUtc: s.config.Now().UTC()}, nil
}

// handshake returns the chain that a target presents, leaf first.
func handshake(ctx context.Context, target Target, c Certificate) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	// Every chain is read, even with an expired certificate; nothing is sent over this connection, and look verifies
	// the chain itself.
	dialer := tls.Dialer{Config: &tls.Config{ServerName: serverName(target, c), InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", target.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	secure, ok := conn.(*tls.Conn)
	if !ok || len(secure.ConnectionState().PeerCertificates) == 0 {
		return nil, errors.New("no certificate was presented")
	}
	return secure.ConnectionState().PeerCertificates, nil
}

// serverName returns the name to request: one that clients use, since a target may serve other certificates under
// other names.
func serverName(target Target, c Certificate) string {
	if target.ServerName != "" {
		return target.ServerName
	}
	host, _, err := net.SplitHostPort(target.Address)
	if err == nil && slices.ContainsFunc(c.Domains, func(domain string) bool { return isFor(domain, host) }) {
		return host
	}
	// www represents any label of a wildcard
	return strings.Replace(c.Domains[0], "*", "www", 1)
}

// isFor reports whether a domain of a certificate covers a host; a wildcard covers one label.
func isFor(domain, host string) bool {
	if rest, wildcard := strings.CutPrefix(domain, "*."); wildcard {
		_, parent, _ := strings.Cut(host, ".")
		return strings.EqualFold(parent, rest)
	}
	return strings.EqualFold(domain, host)
}
