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

// handshakeTimeout bounds one look at a target.
const handshakeTimeout = 15 * time.Second

// Distributor tells a target to fetch a version of a certificate from the store and to serve it. It may be told the same
// again. Errors are ErrTarget, and others, after which it can be repeated.
type Distributor interface {
	Distribute(ctx context.Context, to Target, c Certificate) error
}

// DistributeInput says what a target has to serve.
type DistributeInput struct {
	Target      Target      `json:"target"`
	Certificate Certificate `json:"certificate"`
	// Nobody says that the certificate has no targets, instead of a Target.
	Nobody bool `json:"nobody,omitempty"`
}

// noTargets is the note of a distribution to nobody.
const noTargets = "no target is known to serve this certificate: nobody was told, and no version before it is disabled"

// DistributeOutput is proof that a target serves a certificate.
type DistributeOutput struct {
	TargetID string `json:"targetId"`
	// Fingerprint and Serial are those of the certificate that the target presented.
	Fingerprint string `json:"fingerprint"`
	Serial      string `json:"serial"`
	// Told says that it had to be told; otherwise it served the certificate already.
	Told bool `json:"told"`
	// Sent is how the notice said who sends it, nil when there was none or the client does not record it.
	Sent *outbound.Sent `json:"sent,omitempty"`
	// VerifiedAtUtc is when it presented the certificate.
	VerifiedAtUtc time.Time `json:"verifiedAtUtc"`
	// Note says that there is nobody to tell; nothing else is set then but what names the certificate.
	Note string `json:"note,omitempty"`
}

// Distribute makes sure that a target serves a certificate: it looks, tells it when it does not, and looks again.
// ErrNotServed means that it does not yet.
func (s *Steps) Distribute(ctx context.Context, in DistributeInput) (DistributeOutput, error) {
	if in.Nobody {
		return DistributeOutput{Fingerprint: in.Certificate.Fingerprint, Serial: in.Certificate.Serial, Note: noTargets}, nil
	}
	if in.Target.ID == "" || in.Target.Address == "" || in.Certificate.Fingerprint == "" || in.Certificate.Version == "" {
		return DistributeOutput{}, fmt.Errorf("distribute: %w: target id, address, certificate version and fingerprint are required", ErrInput)
	}
	out, err := s.look(ctx, in)
	if err == nil {
		// An attempt before this one may have told it.
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

// noteTold hands on to later attempts how a target was told; nil hands on nothing.
func noteTold(ctx context.Context, sent *outbound.Sent) {
	if sent == nil {
		return
	}
	// Only an activity has later attempts, and one that is to stop learns it from its context.
	_ = orchestrator.Heartbeat(ctx, sent)
}

// toldBefore is how an attempt before this one has told the target, nil when none did.
func toldBefore(ctx context.Context) *outbound.Sent {
	var sent outbound.Sent
	progress := orchestrator.Info(ctx).Progress
	if len(progress) == 0 || json.Unmarshal(progress, &sent) != nil {
		return nil
	}
	return &sent
}

// by says how a target was told, for the attempt that does not see it serve.
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

// handshake returns what a target presents, leaf first.
func handshake(ctx context.Context, target Target, c Certificate) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	// Whatever it presents has to be seen, an expired certificate as well; nothing is sent over this connection, and look
	// verifies the chain itself.
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

// serverName is the name to ask for: one that clients ask for, since a target may serve other certificates under other names.
func serverName(target Target, c Certificate) string {
	if target.ServerName != "" {
		return target.ServerName
	}
	host, _, err := net.SplitHostPort(target.Address)
	if err == nil && slices.ContainsFunc(c.Domains, func(domain string) bool { return isFor(domain, host) }) {
		return host
	}
	// www stands for what a wildcard is for.
	return strings.Replace(c.Domains[0], "*", "www", 1)
}

// isFor says whether a domain of a certificate is for a host; a wildcard is for all of one label.
func isFor(domain, host string) bool {
	if rest, wildcard := strings.CutPrefix(domain, "*."); wildcard {
		_, parent, _ := strings.Cut(host, ".")
		return strings.EqualFold(parent, rest)
	}
	return strings.EqualFold(domain, host)
}
