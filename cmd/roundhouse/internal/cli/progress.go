package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

const (
	barLength = 24
	// patience is the number of consecutive failed reads of an operation that are tolerated: it continues anyway.
	patience = 30
)

// bar draws the progress of an operation repeatedly in one line.
type bar struct {
	app   *app
	total int
	began time.Time
	drawn bool
	last  string
}

func (b *bar) draw(o client.Operation) {
	handled := o.Progress.Done + o.Progress.PassedOver
	rate := 0.0
	if seconds := b.app.Now().Sub(b.began).Seconds(); seconds > 0 {
		rate = float64(handled) / seconds
	}
	filled := barLength
	if total := max(b.total, handled); total > 0 && !o.Ended() {
		filled = barLength * handled / total
	}
	line := fmt.Sprintf("[%s%s] %d", strings.Repeat("#", filled), strings.Repeat(".", barLength-filled), handled)
	if b.total > 0 {
		line += fmt.Sprintf("/%d", b.total)
	}
	line += fmt.Sprintf("  %.1f/s  %s", rate, o.Status)
	if o.Progress.PassedOver > 0 {
		line += fmt.Sprintf(", %d passed over", o.Progress.PassedOver)
	}
	if !b.app.screen.draws {
		if plain := fmt.Sprint(handled, o.Status); plain != b.last {
			b.app.note("%s", line)
			b.last = plain
		}
		return
	}
	fmt.Fprintf(b.app.Stderr, "\r%-79s", line)
	b.drawn = true
}

// end leaves the line.
func (b *bar) end() {
	if b.drawn {
		fmt.Fprintln(b.app.Stderr)
		b.drawn = false
	}
}

// begin starts an operation and waits for its end, unless wait is false. total is the number of its objects, 0 for
// unknown.
func (a *app) begin(ctx context.Context, c *client.Client, r client.Request, total int, wait bool) error {
	answer, err := a.ask(ctx, c, r)
	if err != nil {
		return err
	}
	var o client.Operation
	if err := decodeInto(answer.Data, &o); err != nil {
		return err
	}
	a.note("Operation %s was accepted.", o.ID)
	if !wait {
		a.note("See how it goes: roundhouse operation show %s", o.ID)
		return a.printDetail(answer.Data)
	}
	return a.follow(ctx, c, o.ID, total)
}

// follow shows an operation until it ends or the wait is interrupted.
func (a *app) follow(ctx context.Context, c *client.Client, id string, total int) error {
	data, err := a.watch(ctx, c, id, total)
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return a.leave(ctx, c, id)
	}
	if err != nil {
		return err
	}
	if err := a.printDetail(data); err != nil {
		return err
	}
	var o client.Operation
	if err := decodeInto(data, &o); err != nil {
		return err
	}
	switch {
	case o.Status == "Succeeded":
		return nil
	case o.Error != nil:
		return fmt.Errorf("operation %s %s: %s", id, strings.ToLower(o.Status), o.Error.Message)
	default:
		return fmt.Errorf("operation %s ended as %s", id, o.Status)
	}
}

// watch polls an operation until it ends, and returns it.
func (a *app) watch(ctx context.Context, c *client.Client, id string, total int) (json.RawMessage, error) {
	b := &bar{app: a, total: total, began: a.Now()}
	defer b.end()
	tick := time.NewTicker(a.Poll)
	defer tick.Stop()
	stands := false // it is stalled and needs a fix, which is reported once
	for failed := 0; ; {
		answer, err := a.ask(ctx, c, client.Request{Method: http.MethodGet, Path: []string{"operations", id}})
		var o client.Operation
		if err == nil {
			err = decodeInto(answer.Data, &o)
		}
		switch {
		case err == nil:
			failed = 0
			b.draw(o)
			if o.Error != nil && !o.Ended() && !stands {
				b.end()
				a.note("%s", o.Error.Message)
			}
			stands = o.Error != nil
			if o.Ended() {
				return answer.Data, nil
			}
		case exitCode(&failure{err}) != exitUnreachable || failed == patience:
			return nil, fmt.Errorf("operation %s goes on unseen: %w", id, err)
		default:
			failed++
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// leave handles an interruption of a wait: the operation continues, unless the operator at the terminal cancels it.
func (a *app) leave(interrupted context.Context, c *client.Client, id string) error {
	ctx := context.WithoutCancel(interrupted)
	if a.screen.asks {
		typed, err := a.prompt(ctx, a.Signals, "Cancel the operation? It goes on otherwise. [y/N] ")
		if err == nil && strings.EqualFold(typed, "y") {
			_, err = a.ask(ctx, c, cancelOf(id))
			if err != nil {
				return err
			}
			a.note("It ends a little later. What was done stays done.")
			a.note("See how it ended: roundhouse operation show %s", id)
			return errLeft
		}
	}
	a.note("The operation goes on. See how: roundhouse operation wait %s", id)
	a.note("End it: roundhouse operation cancel %s", id)
	return errLeft
}

func cancelOf(id string) client.Request { return post(nil, "operations", id, "cancel") }

// count counts the objects of a list, up to a bound; more reports whether more exist.
func (a *app) count(ctx context.Context, c *client.Client, query url.Values, is func(json.RawMessage) bool, path ...string) (n int, more bool, err error) {
	const pages = 10
	for range pages {
		page, err := look[client.Page](ctx, a, c, query, path...)
		if err != nil {
			return 0, false, err
		}
		for _, item := range page.Items {
			if is == nil || is(item) {
				n++
			}
		}
		if page.Token == "" {
			return n, false, nil
		}
		query.Set("continuationToken", page.Token)
	}
	return n, true, nil
}

// about returns a number of objects as text: exact, or at least when more exist.
func about(n int, more bool, thing string) string {
	switch {
	case more:
		return fmt.Sprintf("%d or more %ss", n, thing)
	case n == 1:
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
