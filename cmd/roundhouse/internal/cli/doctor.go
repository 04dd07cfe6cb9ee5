package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/functionapp"
)

// verdict is the result of a check.
type verdict string

const (
	fine   verdict = "ok"
	watch  verdict = "warn"
	broken verdict = "fail"
)

// maxSkew is the clock difference from which doctor warns.
const maxSkew = 30 * time.Second

// finding is the result of one check of doctor. Fix is the remedy, "" for none.
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Found   string  `json:"found"`
	Fix     string  `json:"fix,omitempty"`
}

// patient collects findings.
type patient struct {
	app *app
	// azure is the app in Azure Resource Manager; nil if it was not read.
	azure    *functionapp.App
	findings []finding
}

func (p *patient) add(check string, v verdict, fix, format string, args ...any) {
	if v == fine {
		fix = ""
	}
	p.findings = append(p.findings, finding{check, v, fmt.Sprintf(format, args...), fix})
}

// tried adds the result of a check. The remedy of an error is fix alone: the operator already runs doctor.
func (p *patient) tried(check string, err error, good, fix string) bool {
	if err != nil {
		p.add(check, broken, fix, "%s", oneLine(err))
		return false
	}
	p.add(check, fine, "", "%s", good)
	return true
}

func (a *app) doctorCommand() *cobra.Command {
	o := azureOptions{}
	c := a.command(spec{
		use: "doctor", short: "Find out what is wrong with settings, access and state",
		long: `Look at the settings, at the app and at the storage account: whether they can
be reached and what they allow, how full the queues are, how clocks differ, and
which versions the rows have. To see what storage allows, doctor makes a table,
a queue and a container with a new name, and deletes them again.

With --app it reads the Function App from Azure, too, with the identity of the
environment or of az login, and compares it with what the program needs:
settings, roles of its identity, functions, host.json, sign-in. The program is
that of the module of this folder, or --program. Address and storage account
are then those of the app. Nothing in Azure is changed, and no value of a
setting is shown.

Exit code 1 says that something is broken; a warning is none.`,
		example: "  roundhouse doctor\n  roundhouse doctor --app $APP_ID --program dist/handler\n  roundhouse doctor --app NAME --group G --subscription S -o json",
		run: func(ctx context.Context, _ []string) error {
			p := &patient{app: a}
			if err := a.examineAzure(ctx, p, o); err != nil {
				return err
			}
			if o.app != "" && p.azure == nil {
				return a.report(ctx, p) // that app, or none, is examined
			}
			p.app.examineApp(ctx, p)
			p.app.examineStorage(ctx, p)
			return a.report(ctx, p)
		},
	})
	o.register(c.Flags())
	return c
}

// report shows the findings.
func (a *app) report(ctx context.Context, p *patient) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	n := 0
	for _, f := range p.findings {
		if f.Verdict == broken {
			n++
		}
	}
	if a.asJSON() {
		if err := a.printValue(map[string]any{"items": p.findings}); err != nil {
			return err
		}
	} else {
		for _, f := range p.findings {
			fmt.Fprintf(a.Stdout, "%-4s  %-22s  %s\n", f.Verdict, f.Check, printable(f.Found))
			if f.Fix != "" {
				fmt.Fprintf(a.Stdout, "%6s%-22s  -> %s\n", "", "", printable(f.Fix))
			}
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d checks failed", n, len(p.findings))
	}
	return nil
}

// clock adds the difference of a clock to ours.
func (p *patient) clock(check string, theirs, from, to time.Time) {
	// The service read its clock somewhere in between, and returns whole seconds.
	skew := theirs.Sub(from.Add(to.Sub(from) / 2)).Round(time.Second)
	switch {
	case skew.Abs() <= time.Second:
		p.add(check, fine, "", "in step with this machine's")
	case skew.Abs() <= maxSkew:
		p.add(check, fine, "", "%v from this machine's", skew)
	default:
		p.add(check, watch, "set the clock of this machine: filters like --from 2h count from it", "%v from this machine's", skew)
	}
}
