package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/orchestrator"
)

// Config configures a Cluster.
type Config struct {
	// Dir is the folder of the app and of logs; required.
	Dir string
	// Account is the storage account, as the test itself reaches it; required.
	Account azure.Account
	// Host and Handler are the account as those reach it, for instance through a [Gate]; the default is Account.
	Host, Handler azure.Account
	// Environment is the additional environment of the handlers, as name=value.
	Environment []string
}

// Cluster is one storage account and the hosts that work over it.
type Cluster struct {
	Tables *azure.Tables
	Queues *azure.Queues

	config Config
	client *orchestrator.Runtime // runs nothing
	hosts  []*Host
}

// New lays out the app. Start starts hosts, and Close ends them.
func New(c Config) (*Cluster, error) {
	for _, a := range []*azure.Account{&c.Host, &c.Handler} {
		if a.Name == "" {
			*a = c.Account
		}
	}
	cluster := &Cluster{config: c}
	var tableErr, queueErr, clientErr error
	cluster.Tables, tableErr = azure.NewTables(c.Account)
	cluster.Queues, queueErr = azure.NewQueues(c.Account)
	blobs, blobErr := azure.NewBlobs(c.Account)
	err := errors.Join(tableErr, queueErr, blobErr)
	if err == nil {
		cluster.client, clientErr = orchestrator.New(orchestrator.Config{Tables: cluster.Tables, Queues: cluster.Queues, Blobs: blobs, Log: slog.New(slog.DiscardHandler)})
		err = errors.Join(clientErr, stage(cluster.root()))
	}
	if err != nil {
		return nil, fmt.Errorf("lay out hosts: %w", err)
	}
	return cluster, nil
}

func (c *Cluster) root() string { return filepath.Join(c.config.Dir, "dist") }

// Start starts a host, and waits until its app is ready.
func (c *Cluster) Start(ctx context.Context) (*Host, error) {
	log, err := os.Create(filepath.Join(c.config.Dir, fmt.Sprintf("host-%d.log", len(c.hosts))))
	if err != nil {
		return nil, err
	}
	h, err := launch(hostConfig{Root: c.root(), Host: c.config.Host.ConnectionString(), Handler: c.config.Handler.ConnectionString(), Environment: c.config.Environment}, log)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	c.hosts = append(c.hosts, h)
	return h, h.Ready(ctx)
}

// Close ends all hosts.
func (c *Cluster) Close() {
	for _, h := range c.hosts {
		h.Kill()
	}
	c.config.Account.CloseIdleConnections()
}

// ID returns the orchestration of a message's correlation id.
func ID(correlation string) string { return Engine + "-" + correlation }

// Send sends the message that starts an orchestration.
func (c *Cluster) Send(ctx context.Context, correlation string, w Work) error {
	return c.SendTraced(ctx, correlation, "", w)
}

// SendTraced is Send with a W3C trace context.
func (c *Cluster) SendTraced(ctx context.Context, correlation, traceParent string, w Work) error {
	input, err1 := json.Marshal(w)
	body, err2 := json.Marshal(engine.Message{CorrelationID: correlation, Engine: Engine, InstanceID: engine.PublisherInstance, TraceParent: traceParent, Input: input})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := c.Queues.Send(ctx, Queue, body, 0)
	return err
}

// Raise sends the event that an orchestration waits for.
func (c *Cluster) Raise(ctx context.Context, correlation string) error {
	return c.client.Raise(ctx, ID(correlation), goEvent, true, "go-"+correlation)
}

// Inspect reads everything about an orchestration.
func (c *Cluster) Inspect(ctx context.Context, id string) (orchestrator.Inspection, error) {
	return c.client.Inspect(ctx, id)
}

// Logs returns the ends of the logs of all hosts and their handlers.
func (c *Cluster) Logs() string {
	var all strings.Builder
	for _, h := range c.hosts {
		text, err := os.ReadFile(h.log.Name())
		fmt.Fprintf(&all, "%s: %v\n%s\n", filepath.Base(h.log.Name()), err, text[max(0, len(text)-logTail):])
	}
	return all.String()
}

// logTail is the shown length of a log.
const logTail = 6000
