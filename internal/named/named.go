// Package named starts BIND for tests: a name server on the loopback interface with zones and signed updates, or a
// secondary of such a server. Names outside its zones do not exist: it forwards no queries. It ends with the test, and
// at the latest with this process. It owns no storage keys.
package named

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/vibedata/roundhouse/internal/daemon"
)

// KeyName and Algorithm are those of a server's key.
const (
	KeyName   = "roundhouse"
	Algorithm = "hmac-sha256"
)

// Config configures a server.
type Config struct {
	// Zones are its primary zones, each with its records besides SOA and NS, in the form of a master file.
	Zones map[string]string
	// Of makes it a secondary of another server instead, of one zone.
	Of *Server
}

// Server is a running name server.
type Server struct {
	// Secret is the key, as base64.
	Secret string

	port    int
	zones   []string
	home    *daemon.Home
	process *daemon.Process
}

// maxPorts bounds the tried ports: BIND needs an unreserved port, which another process may bind first.
const maxPorts = 5

// Start starts a server, which answers when Start returns. ctx bounds the start only. Without BIND it returns a
// daemon.MissingError.
func Start(ctx context.Context, c Config) (*Server, error) {
	folder, err := daemon.Find([]string{"named"}, []string{"/usr/sbin", "/usr/local/sbin"})
	if err != nil {
		return nil, fmt.Errorf("start named: %w", &daemon.MissingError{Tool: "named", Get: "install the package bind9", Err: err})
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	s := &Server{Secret: base64.StdEncoding.EncodeToString(secret[:]), zones: slices.Sorted(maps.Keys(c.Zones))}
	if c.Of != nil {
		s.Secret, s.zones = c.Of.Secret, c.Of.zones
	}
	for range maxPorts {
		if s.port, err = freePort(ctx); err != nil {
			break
		}
		if s.home, err = daemon.NewHome("named", "bind"); err != nil {
			break
		}
		if err = s.run(ctx, filepath.Join(folder, "named"), c); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.Close())
	}
	return nil, fmt.Errorf("start named: %w", err)
}

// freePort returns a port that is free now.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, text, err := net.SplitHostPort(l.Addr().String())
	if err = errors.Join(err, l.Close()); err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// Address returns its address, over UDP and TCP.
func (s *Server) Address() string { return fmt.Sprint("127.0.0.1:", s.port) }

// Close ends the server and deletes its zones.
func (s *Server) Close() error {
	var errs []error
	if s.process != nil {
		errs = append(errs, s.process.Close())
	}
	return errors.Join(append(errs, s.home.Remove())...)
}

func (s *Server) run(ctx context.Context, program string, c Config) error {
	var zones strings.Builder
	for _, zone := range s.zones {
		if c.Of != nil {
			fmt.Fprintf(&zones, "zone %q { type secondary; primaries { 127.0.0.1 port %d key %s; }; file \"secondary.%s\"; };\n", zone, c.Of.port, KeyName, zone)
			continue
		}
		file := "$TTL 60\n@ IN SOA ns hostmaster 1 1 1 600 1\n@ IN NS ns\nns IN A 127.0.0.1\n" + c.Zones[zone] + "\n"
		if _, err := s.home.WriteFile("zone."+zone, file); err != nil {
			return err
		}
		fmt.Fprintf(&zones, "zone %q { type primary; file \"zone.%s\"; update-policy { grant %s subdomain %s TXT; }; };\n", zone, zone, KeyName, zone)
	}
	// With its own root it does not query the internet; it follows aliases from one zone to another only as a resolver
	// does.
	if _, err := s.home.WriteFile("root", "@ 60 IN SOA . . 1 60 60 600 1\n@ 60 IN NS localhost.\nlocalhost. 60 IN A 127.0.0.1\n"); err != nil {
		return err
	}
	path, err := s.home.WriteFile("named.conf", fmt.Sprintf(`
options { directory %q; listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; }; pid-file none; session-keyfile none; recursion yes;
  dnssec-validation no; allow-transfer { key %s; }; notify no; min-refresh-time 1; min-retry-time 1; };
controls { };
zone "." { type primary; file "root"; };
key %s { algorithm %s; secret %q; };
%s`, s.home.Dir, s.port, KeyName, KeyName, Algorithm, s.Secret, zones.String()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ready := "all zones loaded"
	if c.Of != nil {
		ready = "Transfer status: success"
	}
	if s.process, err = s.home.Start(ctx, ready, program, "-g", "-4", "-n", "1", "-c", path); err != nil {
		return err
	}
	// It runs even if another process has its port.
	question := new(dns.Msg)
	question.SetQuestion(dns.Fqdn(s.zones[0]), dns.TypeSOA)
	_, _, err = (&dns.Client{Net: "tcp"}).ExchangeContext(ctx, question, s.Address())
	return err
}
