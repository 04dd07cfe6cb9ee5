package dev

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/vibedata/roundhouse/internal/localhost"
)

// host runs the staged app.
type host interface {
	// Run runs until its context ends, which is no error.
	Run(ctx context.Context) error
	// WaitReady waits until the app reports that it is ready.
	WaitReady(ctx context.Context) error
}

// coreTools is the program of Azure Functions Core Tools.
const coreTools = "func"

// findCoreTools returns an error with the remedy if Core Tools are missing.
func findCoreTools() error {
	if _, err := exec.LookPath(coreTools); err != nil {
		return errors.New("there is no `func` in PATH: install Azure Functions Core Tools with `npm install -g azure-functions-core-tools@4`, or do without --func")
	}
	return nil
}

// coreToolsHost is the host of Azure Functions Core Tools, which shows its own and the app's logs.
type coreToolsHost struct{ *platform }

// Run runs func start. It stops it with an interrupt: a kill would leave the handler behind.
func (h coreToolsHost) Run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, coreTools, "start", "--script-root", h.dist(), "--port", strconv.Itoa(h.Port))
	cmd.Dir = h.Module.Dir
	cmd.Env = append(os.Environ(), "AzureWebJobsStorage="+h.storage.ConnectionString(), "ROUNDHOUSE_LOCAL_KEY="+h.key)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, h.Progress, h.Progress
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("func start: %w", err)
	default:
		return errors.New("func start has stopped by itself") // after the handler has ended three times
	}
}

// WaitReady polls the app until it is ready, without a timeout: the first start downloads the extension bundle.
func (h coreToolsHost) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(samplePoll)
	defer tick.Stop()
	for {
		if ready(ctx, h.url()+"/api/health/ready") {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func ready(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// newHost returns the host for the app, and its name.
func (p *platform) newHost() (host, string, error) {
	if p.CoreTools {
		return coreToolsHost{p}, "func start --script-root " + fromHere(p.dist()), nil
	}
	h, err := localhost.New(localhost.Config{ScriptRoot: p.dist(), Queues: p.queues, Blobs: p.blobs, Port: p.Port, Output: p.output, FunctionKey: p.key,
		Env: []string{"AzureWebJobsStorage=" + p.storage.ConnectionString()}, OnInvocation: p.out.invocation})
	return localHost{p, h}, "the local Functions host", err
}

// localHost is the host of this program.
type localHost struct {
	*platform
	*localhost.Host
}

// slowStart is the time after which a slow start is explained.
const slowStart = 10 * time.Second

// WaitReady waits until the app has prepared its storage.
func (h localHost) WaitReady(ctx context.Context) error {
	slow := time.AfterFunc(slowStart, func() { h.out.note("The app is not ready yet; %s", h.logPlace()) })
	defer slow.Stop()
	return h.WaitAnswer(ctx, "/api/health/ready")
}
