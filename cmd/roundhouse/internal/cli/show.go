package cli

import (
	"context"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// opener opens the API client.
type opener func(ctx context.Context) (*client.Client, error)

// showCommand makes the command that shows one object below a path: its arguments are the rest of the path.
func (a *app) showCommand(args, short string, open opener, path ...string) *cobra.Command {
	return a.command(spec{
		use: "show " + args, short: short, args: cobra.ExactArgs(len(strings.Fields(args))),
		run: func(ctx context.Context, args []string) error {
			return a.tell(ctx, open, client.Request{Method: http.MethodGet, Path: append(path[:len(path):len(path)], args...)})
		},
	})
}

// tell sends a request, and shows the API's answer.
func (a *app) tell(ctx context.Context, open opener, r client.Request) error {
	c, err := open(ctx)
	if err != nil {
		return err
	}
	answer, err := a.ask(ctx, c, r)
	if err != nil {
		return err
	}
	return a.printDetail(answer.Data)
}

// post returns a POST request.
func post(body any, path ...string) client.Request {
	return client.Request{Method: http.MethodPost, Path: path, Body: body}
}

// only returns a body of the members with a value.
func only(members map[string]string) map[string]string {
	body := map[string]string{}
	for name, value := range members {
		if value != "" {
			body[name] = value
		}
	}
	return body
}
