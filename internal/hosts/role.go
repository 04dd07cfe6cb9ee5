package hosts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/handler"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/internal/localhost"
)

const (
	// roleVariable holds the role of a process, configVariable its configuration.
	roleVariable   = "ROUNDHOUSE_HOSTS_ROLE"
	configVariable = "ROUNDHOUSE_HOSTS_CONFIG"
	roleHost       = "host"
	roleHandler    = "handler"
	// killHandler is the line that makes a host kill its handler.
	killHandler = "kill handler"
	// endHandler is the line that makes a host end its handler.
	endHandler = "end handler"
)

// Main plays the role of this process, a host or a handler, and then does not return.
func Main() {
	switch os.Getenv(roleVariable) {
	case roleHandler:
		handler.Main(app())
	case roleHost:
		if err := beHost(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// hostConfig is the configuration of a host process. Host and Handler are the connection strings of the two.
type hostConfig struct {
	Root, Host, Handler string
	// Environment is added to the handler's.
	Environment []string
}

// beHost runs a host until SIGTERM, or until its standard input ends with the process that started it.
func beHost() error {
	var c hostConfig
	if err := json.Unmarshal([]byte(os.Getenv(configVariable)), &c); err != nil {
		return fmt.Errorf("read %s: %w", configVariable, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	host, out, err := newHost(c)
	if err != nil {
		return err
	}
	go obey(host, os.Stdin)
	go announce(ctx, host, out)
	return host.Run(ctx)
}

// newHost makes the host; its notes go to standard output.
func newHost(c hostConfig) (*localhost.Host, *teller, error) {
	account, err := azure.FromConnectionString(c.Host)
	if err != nil {
		return nil, nil, err
	}
	queue, err1 := azure.NewQueues(account)
	blob, err2 := azure.NewBlobs(account)
	program, err3 := os.Executable()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, nil, err
	}
	out := newTeller(os.Stdout)
	host, err := localhost.New(localhost.Config{ScriptRoot: c.Root, Queues: watched{queue, out}, Blobs: blob, Output: os.Stderr,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), CrashWindow: time.Nanosecond, Chunked: true,
		Env: append([]string{settings.Storage + "=" + c.Handler, roleVariable + "=" + roleHandler, configVariable + "=",
			"AzureFunctionsJobHost__customHandler__description__defaultExecutablePath=" + program}, c.Environment...)})
	return host, out, err
}

// announce reports when the app is ready.
func announce(ctx context.Context, host *localhost.Host, out *teller) {
	if err := host.WaitAnswer(ctx, "/api/health/ready"); err == nil {
		out.tell(note{Kind: noteReady, URL: host.URL()})
	}
}

// obey ends the handler on command, and this process at the end of its input. The handler is ended from outside, so the
// host notices as after a crash.
func obey(host *localhost.Host, in io.Reader) {
	orders := map[string]os.Signal{killHandler: syscall.SIGKILL, endHandler: syscall.SIGTERM}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		process, err := os.FindProcess(host.HandlerPID())
		if signal, known := orders[lines.Text()]; known && err == nil {
			_ = process.Signal(signal) // an ended one is fine, too
		}
	}
	os.Exit(1)
}
