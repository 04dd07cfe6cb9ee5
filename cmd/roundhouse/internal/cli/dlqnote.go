package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

// errAssign: the arguments of an assignment are mutually exclusive.
var errAssign = errors.New("--name goes with PERSON, and --release with neither")

// byAssignee filters by assignee.
func byAssignee() filter {
	return filter{flag: "assignee", param: "assignee", usage: "only those that this `person` takes care of: me, nobody, or an id"}
}

// noteLetterCommand makes the command that adds a note to a dead letter.
func (a *app) noteLetterCommand() *cobra.Command {
	return a.command(spec{
		use: "note ENGINE ROWKEY TEXT", short: "Note something about a dead letter, without a decision", args: cobra.ExactArgs(3),
		run: func(ctx context.Context, args []string) error {
			return a.tell(ctx, a.either, post(map[string]string{"text": args[2]}, "dlq", args[0], args[1], "notes"))
		},
	})
}

// assignLetterCommand makes the command that assigns a dead letter.
func (a *app) assignLetterCommand() *cobra.Command {
	var name string
	var release bool
	c := a.command(spec{
		use: "assign ENGINE ROWKEY [PERSON] [flags]", short: "Say who takes care of a dead letter: a person by id, or you",
		long: `Say who takes care of a dead letter. Without PERSON it is you, unless somebody
else has it already; --release means nobody. An id is what "roundhouse whoami"
shows of a person. "dlq list --assignee me" has what is yours.`,
		args: cobra.RangeArgs(2, 3),
		run: func(ctx context.Context, args []string) error {
			r := post(nil, "dlq", args[0], args[1], "claim")
			switch {
			case release && (len(args) == 3 || name != ""), name != "" && len(args) == 2:
				return Mark(ErrUsage, errAssign)
			case release:
				r = client.Request{Method: r.Method, Path: []string{"dlq", args[0], args[1], "release"}}
			case len(args) == 3:
				r = post(only(map[string]string{"assignee": args[2], "assigneeName": name}), "dlq", args[0], args[1], "assign")
			}
			return a.tell(ctx, a.either, r)
		},
	})
	c.Flags().StringVar(&name, "name", "", "a `name` of the person, for people")
	c.Flags().BoolVar(&release, "release", false, "nobody takes care of it any more")
	return c
}
