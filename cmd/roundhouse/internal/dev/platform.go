package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/blobs"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/devkey"
	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/module"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/queues"
)

// platform is the running environment: storage, and a host over the staged folder.
type platform struct {
	Options
	out *progress

	storage  azure.Account
	server   *azurite.Server // nil when a running Azurite is used
	key      string          // key of the app; "" when none is required
	queues   queues.Store
	blobs    blobs.Store
	output   io.Writer // of the app
	logFile  *os.File
	manifest module.Manifest
}

// dist returns the folder of the staged app: separate from the one for a deployment, which has no settings of this
// machine.
func (p *platform) dist() string { return filepath.Join(p.State, "dist") }

// prepare stages the module and starts storage.
func (p *platform) prepare(ctx context.Context) error {
	if p.CoreTools {
		if err := findCoreTools(); err != nil {
			return err
		}
	}
	if err := checkPort(p.Port); err != nil {
		return err
	}
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return err
	}
	if err := p.stage(ctx); err != nil {
		return err
	}
	if !p.Insecure {
		var err error
		if p.key, err = devkey.Keep(p.State); err != nil {
			return err
		}
	}
	return p.startStorage(ctx)
}

func (p *platform) stage(ctx context.Context) (err error) {
	p.out.step("Building the app into %s (the first time, Go compiles everything that it needs, for a minute or two)", fromHere(p.dist()))
	p.manifest, err = p.Module.Stage(ctx, p.dist(), module.Here)
	return err
}

func (p *platform) startStorage(ctx context.Context) error {
	ports := &p.Storage
	running, err := azurite.Running(ctx, ports.Blob, ports.Queue, ports.Table)
	if err != nil {
		return fmt.Errorf("%w\n(other ports for Azurite: --storage-ports 20000,20001,20002)", err)
	}
	p.storage = azure.EmulatorAccount(ports.Blob, ports.Queue, ports.Table)
	if running {
		p.out.step("Using the Azurite that runs on ports %s", ports)
		return nil
	}
	p.out.step("Starting Azurite on ports %s (the first time, npm installs it)", ports)
	p.server, err = azurite.Start(ctx, azurite.Config{DataDir: filepath.Join(p.State, "azurite"),
		BlobPort: ports.Blob, QueuePort: ports.Queue, TablePort: ports.Table})
	return err
}

// close stops the processes that the package has started.
func (p *platform) close() {
	if p.server != nil {
		if err := p.server.Close(); err != nil {
			p.out.note("Azurite could not be stopped: %v", err)
		}
	}
	p.storage.CloseIdleConnections()
	if p.logFile != nil {
		p.logFile.Close()
	}
}

// run runs a host, and restarts it whenever the module has changed and builds.
func (p *platform) run(ctx context.Context) error {
	var queueErr, blobErr, logErr error
	p.queues, queueErr = azure.NewQueues(p.storage)
	p.blobs, blobErr = azure.NewBlobs(p.storage)
	p.output, logErr = p.openLog()
	if err := errors.Join(queueErr, blobErr, logErr); err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	if !p.Still && !p.Once {
		go watch(ctx, p.Module.Dir, changed)
	}
	for first := true; ; first = false {
		host, name, err := p.newHost()
		if err != nil {
			return err
		}
		p.out.step("Starting %s", name)
		again, err := p.serve(ctx, host, sample{base: p.url(), key: p.key, queues: p.queues, out: p.out}, first, changed)
		if err != nil || !again {
			return err
		}
	}
}

// serve runs a host until the app is rebuilt, and then returns for another one.
func (p *platform) serve(ctx context.Context, host host, s sample, first bool, changed <-chan struct{}) (again bool, err error) {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		err := host.Run(running)
		if err != nil {
			cancel(fmt.Errorf("the host ended: %w; %s", err, p.logPlace()))
		}
		ended <- err
	}()
	if err = host.WaitReady(running); err == nil && first {
		err = p.try(running, s)
	}
	if err == nil && !p.Once {
		again = p.awaitBuild(running, changed)
	}
	cause := context.Cause(running)
	cancel(nil)
	hostErr := <-ended
	switch {
	case err != nil && cause != nil && !errors.Is(cause, context.Canceled):
		return false, cause
	case err != nil:
		return false, err
	default:
		return again, hostErr
	}
}

// try sends the sample, and shows its result and the next steps.
func (p *platform) try(ctx context.Context, s sample) error {
	about, message, ok := p.example()
	if !ok {
		if p.Once {
			return errors.New("--once needs a sample: give the definition of an engine an Example")
		}
		p.out.note("No sample is sent: no engine's definition has an Example.")
		p.showPaths(p.Result)
		return nil
	}
	found, err := s.run(ctx, about, message, p.Once)
	if err != nil {
		return err
	}
	if p.Once {
		_, err := p.Result.Write(append(found.raw, '\n'))
		return err
	}
	found.show(p.Result)
	p.showPaths(p.Result)
	return nil
}

// awaitBuild waits until the module has changed and builds, true, or until the host ends, false. A failed build
// leaves the host running.
func (p *platform) awaitBuild(ctx context.Context, changed <-chan struct{}) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
		p.out.step("Something has changed")
		err := p.stage(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			p.out.note("%v", err)
			p.out.note("The app of before goes on.")
		}
	}
}
