package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/audit"
	"github.com/vibedata/roundhouse/engine"
	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/queues"
)

// sent is the output of send.
type sent struct {
	MessageID     string `json:"messageId"`
	Queue         string `json:"queue"`
	CorrelationID string `json:"correlationId"`
}

func (a *app) sendCommand() *cobra.Command {
	var m engine.Message
	var input string
	c := a.command(spec{
		use: "send ENGINE [flags]", short: "Send a message to an engine",
		long: `Send a message to an engine's queue, straight to storage: the engine gets it
when the app runs. What becomes of it is in the timeline of its correlation id.
A message with the correlation id of one that has succeeded does nothing.

The engines are those that the app has left in storage when it last started:
roundhouse engines shows them.`,
		example: `  roundhouse send hmac --operation rotate --instance i-1
  roundhouse send tls --input '{"domains":["example.org"]}'
  roundhouse send update --instance i-1 --input @update.json`,
		args: cobra.ExactArgs(1), completeFrom: a.completeEngines,
		run: func(ctx context.Context, args []string) error { return a.send(ctx, args[0], m, input) },
	})
	f := c.Flags()
	f.StringVar(&m.Operation, "operation", "", "the `operation`; the engine's default unless given")
	f.StringVar(&m.InstanceID, "instance", "", "the managed `instance`; the publisher unless given")
	f.StringVar(&m.TenantID, "tenant", "", "the `tenant`")
	f.StringVar(&m.CorrelationID, "correlation-id", "", "the `id` of the run; a new one unless given")
	f.StringVar(&input, "input", "", "the engine's input as `JSON`, @file, or - for standard input")
	return c
}

func (a *app) send(ctx context.Context, name string, m engine.Message, input string) error {
	data, err := a.input("input", input)
	if err != nil {
		return err
	}
	s, err := a.stores()
	if err != nil {
		return err
	}
	m.Engine, m.Input, m.CorrelationID = name, data, cmp.Or(m.CorrelationID, uuid.NewString())
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	to, err := engineOf(ctx, s, name)
	if err != nil {
		return err
	}
	body, err := engine.NewClaims(s.Blobs, "").Pack(ctx, m)
	if err != nil {
		return err
	}
	e := audit.Entry{Permission: string(access.OrchestrationsStart), Action: "send " + name, Target: "engines/" + name, TenantID: m.TenantID, CorrelationID: m.CorrelationID}
	var id string
	err = a.recorded(ctx, s, e, func() (after string, err error) {
		id, err = s.Queues.Send(ctx, to.Queue, body, 0)
		return "message " + id, err
	})
	if errors.Is(err, queues.ErrNotFound) {
		return fmt.Errorf("%w: the app makes its queues when it starts: has it run with this storage account, in the context of this engine?", err)
	}
	if err != nil {
		return err
	}
	if a.asJSON() {
		return a.printValue(sent{id, to.Queue, m.CorrelationID})
	}
	fmt.Fprintf(a.Stdout, "Sent to %s as message %s.\nCorrelation id %s\n", to.Queue, id, printable(m.CorrelationID))
	a.note("See what becomes of it: roundhouse timeline %s", m.CorrelationID)
	return nil
}
