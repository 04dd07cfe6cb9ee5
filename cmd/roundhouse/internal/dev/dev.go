// Package dev runs an app on this machine: it stages the module, starts Azurite or uses a running one, and starts the
// local Functions host on the staged app. Then it sends a sample message and shows its result. It stages and restarts
// when a file of the module changes.
//
// Progress goes to Options.Progress. The package stops everything that it has started. It owns no storage keys; in
// the file system it owns the folder of Options.State.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/devkey"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/module"
	"github.com/vibedata/roundhouse/internal/localhost"
)

// onceLimit bounds a run with Options.Once. It includes the installation of Azurite and the first build.
const onceLimit = 10 * time.Minute

// Options select the app and its environment. Module, Result and Progress are required.
type Options struct {
	Module module.Module
	// Once stops after the first result, which goes to Result: the history entry of the sample's run, as one line of
	// JSON.
	Once bool
	// CoreTools runs the host of Azure Functions Core Tools, which shows the app's log.
	CoreTools bool
	// Verbose shows the app's log; otherwise it goes to the file handler.log of State.
	Verbose bool
	// Still does not watch for changes.
	Still bool
	// Engine is the engine of the sample: one whose definition has an example; the first of these when empty.
	// NoSample sends none.
	Engine   string
	NoSample bool
	// Insecure requires no key.
	Insecure bool
	// Port is the port of the host.
	Port int
	// Storage are Azurite's ports.
	Storage StoragePorts
	// State is the folder of the staged app, of Azurite's data, the log and the app's key, in the module unless it is
	// absolute.
	State string
	// Result receives results, Progress the progress.
	Result, Progress io.Writer
}

// DefaultPort is that of the Functions host in development.
const DefaultPort = localhost.DefaultPort

// StoragePorts are Azurite's ports.
type StoragePorts struct{ Blob, Queue, Table int }

// DefaultStorage returns Azurite's default ports.
func DefaultStorage() StoragePorts { return StoragePorts{10000, 10001, 10002} }

// String returns the ports separated by commas, as Set reads them.
func (p *StoragePorts) String() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%d,%d,%d", p.Blob, p.Queue, p.Table)
}

// Set reads "blob,queue,table".
func (p *StoragePorts) Set(text string) error {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return errors.New("three ports are needed, as in 10000,10001,10002")
	}
	for i, port := range []*int{&p.Blob, &p.Queue, &p.Table} {
		n, err := strconv.Atoi(strings.TrimSpace(parts[i]))
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is not a port", parts[i])
		}
		*port = n
	}
	return nil
}

// Type returns the value's name in the help of the command line.
func (p *StoragePorts) Type() string { return "blob,queue,table" }

// Run runs the app until ctx ends, which is no error, or until the first result with Options.Once.
func Run(ctx context.Context, o Options) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if o.Once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, onceLimit, fmt.Errorf("no result within %v", onceLimit))
		defer cancel()
	}
	if !filepath.IsAbs(o.State) {
		o.State = filepath.Join(o.Module.Dir, o.State)
	}
	p := &platform{Options: o, out: newProgress(o.Progress)}
	defer p.close()
	if err := p.prepare(ctx); err != nil {
		return err
	}
	withdraw, err := devkey.Announce(p.State, p.url())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, withdraw()) }()
	return p.run(ctx)
}

// checkPort checks that the host's port is free, before anything is started.
func checkPort(port int) error {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("the port of the host, %d, is taken: is another host running? Stop it, or give another --port: %w", port, err)
	}
	return listener.Close()
}

// logPlace returns the place of the app's log.
func (p *platform) logPlace() string {
	if p.Verbose || p.CoreTools {
		return "what it and the handler said is above"
	}
	return "the handler's log is in " + filepath.Join(p.State, "handler.log")
}

// openLog opens the app's log.
func (p *platform) openLog() (io.Writer, error) {
	if p.Verbose || p.CoreTools {
		return p.Progress, nil
	}
	var err error
	p.logFile, err = os.Create(filepath.Join(p.State, "handler.log"))
	return p.logFile, err
}
