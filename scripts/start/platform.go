package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/internal/azurite"
	"github.com/vibedata/roundhouse/internal/localhost"
	"github.com/vibedata/roundhouse/queues"
)

// storagePorts are Azurite's.
type storagePorts struct{ blob, queue, table int }

func (p *storagePorts) String() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%d,%d,%d", p.blob, p.queue, p.table)
}

// Set reads "blob,queue,table".
func (p *storagePorts) Set(text string) error {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return errors.New("three ports are needed, as in 10000,10001,10002")
	}
	for i, port := range []*int{&p.blob, &p.queue, &p.table} {
		n, err := strconv.Atoi(strings.TrimSpace(parts[i]))
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is not a port", parts[i])
		}
		*port = n
	}
	return nil
}

// platform is everything that runs: storage and a host over the staged folder.
type platform struct {
	options
	root string
	out  *progress

	storage azure.Account
	server  *azurite.Server // nil when a running Azurite is used
	logFile *os.File
}

func (p *platform) dist() string { return filepath.Join(p.root, "dist") }

// coreTools is the program of Azure Functions Core Tools.
const coreTools = "func"

// prepare stages dist/ and brings storage up.
func (p *platform) prepare(ctx context.Context) error {
	if p.coreTool {
		if _, err := exec.LookPath(coreTools); err != nil {
			return errors.New("there is no `func` in PATH: install Azure Functions Core Tools with `npm install -g azure-functions-core-tools@4`, or use `make run`, which does without")
		}
	}
	p.out.step("Staging dist/ (the handler, host.json and the functions)")
	cmd := exec.CommandContext(ctx, filepath.Join(p.root, "scripts", "stage"), "--local")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("scripts/stage: %w\n%s", err, strings.TrimSpace(said.String()))
	}
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return err
	}
	return p.startStorage(ctx)
}

func (p *platform) startStorage(ctx context.Context) error {
	ports := p.options.storage
	running, err := azurite.Running(ctx, ports.blob, ports.queue, ports.table)
	if err != nil {
		return fmt.Errorf("%w\n(other ports for Azurite: ARGS=\"-storage-ports 20000,20001,20002\")", err)
	}
	p.storage = azure.EmulatorAccount(ports.blob, ports.queue, ports.table)
	if running {
		p.out.step("Using the Azurite that runs on ports %s", &ports)
		return nil
	}
	p.out.step("Starting Azurite on ports %s (the first time, npm installs it)", &ports)
	p.server, err = azurite.Start(ctx, azurite.Config{
		DataDir:  filepath.Join(p.state, "azurite"),
		BlobPort: ports.blob, QueuePort: ports.queue, TablePort: ports.table,
	})
	return err
}

// close stops what this command has started.
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

// runLocalHost runs the host of this repository, and the sample over it.
func (p *platform) runLocalHost(ctx context.Context) error {
	queueStore, queueErr := azure.NewQueues(p.storage)
	blobStore, blobErr := azure.NewBlobs(p.storage)
	if err := errors.Join(queueErr, blobErr); err != nil {
		return err
	}
	config := localhost.Config{ScriptRoot: p.dist(), Queues: queueStore, Blobs: blobStore, Port: p.port,
		Env: []string{"AzureWebJobsStorage=" + p.storage.ConnectionString()}, OnInvocation: p.out.invocation}
	if p.verbose {
		config.Output = os.Stderr
	} else {
		var err error
		if p.logFile, err = os.Create(filepath.Join(p.state, "handler.log")); err != nil {
			return err
		}
		config.Output = p.logFile
	}
	host, err := localhost.New(config)
	if err != nil {
		return err
	}
	p.out.step("Starting the local Functions host")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		err := host.Run(ctx)
		if err != nil {
			cancel(fmt.Errorf("the host ended: %w; the handler's log is in %s", err, filepath.Join(p.state, "handler.log")))
		}
		ended <- err
	}()
	err = p.serve(ctx, host, queueStore)
	cause := context.Cause(ctx)
	cancel(nil)
	hostErr := <-ended
	switch {
	case err != nil && cause != nil && !errors.Is(cause, context.Canceled):
		return cause
	case err != nil:
		return err
	default:
		return hostErr
	}
}

func (p *platform) serve(ctx context.Context, host *localhost.Host, queueStore queues.Store) error {
	if err := host.WaitReady(ctx); err != nil {
		return err
	}
	s := sample{base: host.URL(), queues: queueStore, out: p.out}
	entry, err := s.run(ctx)
	if err != nil {
		return err
	}
	if p.once {
		_, err := os.Stdout.Write(append(entry.raw, '\n'))
		return err
	}
	entry.show(os.Stdout, host.URL(), p.options.storage)
	<-ctx.Done()
	return nil
}

// runCoreTools hands dist/ to Azure Functions Core Tools and waits for their end.
func (p *platform) runCoreTools(ctx context.Context) error {
	p.out.step("Starting func start --script-root dist")
	cmd := exec.CommandContext(ctx, coreTools, "start", "--script-root", p.dist(), "--port", strconv.Itoa(p.port))
	cmd.Dir = p.root
	cmd.Env = append(os.Environ(), "AzureWebJobsStorage="+p.storage.ConnectionString())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Core Tools stop themselves and the handler at an interrupt; a kill would leave the handler behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.Run()
}
