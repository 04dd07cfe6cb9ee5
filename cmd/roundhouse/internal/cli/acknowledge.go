package cli

import (
	"context"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// acknowledgeCommand acknowledges the arrival of a new version of a credential at a consumer.
func (a *app) acknowledgeCommand() *cobra.Command {
	return a.command(spec{
		use: "acknowledge ENGINE TARGET VERSION CONSUMER", short: "Say that a new key or password has arrived at a consumer",
		long: `Say that a version of a key or password has arrived at a consumer that is
registered for it in ROUNDHOUSE_ROTATIONS. The version before is retired when
it has arrived at everybody. Repeating it changes nothing.

TARGET is the instance of hmac, the application of spn.`,
		example: "  roundhouse acknowledge hmac i-1 fb88e7e97a6fd406f0ed52fe96c10477 gateway",
		args:    cobra.ExactArgs(4),
		run: func(ctx context.Context, args []string) error {
			body := map[string]string{"engine": args[0], "target": args[1], "version": args[2], "consumer": args[3]}
			return a.tell(ctx, a.api, post(body, "acknowledgements"))
		},
	})
}

// consumersCommand lists acknowledgements by consumer.
func (a *app) consumersCommand() *cobra.Command {
	return a.command(spec{
		use: "consumers ENGINE TARGET", short: "Show who has which version of a key or password, and what waits",
		example: "  roundhouse consumers hmac i-1", args: cobra.ExactArgs(2),
		run: func(ctx context.Context, args []string) error {
			return a.tell(ctx, a.api, client.Request{Method: http.MethodGet, Path: []string{"acknowledgements"}, Query: url.Values{"engine": {args[0]}, "target": {args[1]}}})
		},
	})
}
