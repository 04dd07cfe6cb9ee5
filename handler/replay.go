package handler

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/azure"
	"github.com/vibedata/roundhouse/codec"
	"github.com/vibedata/roundhouse/handler/settings"
	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/queues"
	"github.com/vibedata/roundhouse/services/keys"
)

const (
	// replayPage is the number of orchestrations read at a time, and replayAtOnce the number replayed in parallel.
	replayPage   = 100
	replayAtOnce = 8
	// replayTries bounds the reads of an orchestration that changes meanwhile.
	replayTries = 5
	// replayGroups bounds the kinds of findings that are counted separately.
	replayGroups = 100
)

// The kinds of findings.
const (
	findingDiffers = "differs" // the code decides differently than the history
	findingUnknown = "unknown" // the orchestrator or its version is unknown
	findingUnread  = "unread"  // unreadable, or the replay fails otherwise
)

// replayFinding is an orchestration that would stall.
type replayFinding struct {
	ID           string              `json:"id"`
	Orchestrator string              `json:"orchestrator"`
	Version      string              `json:"version,omitempty"`
	Status       orchestrator.Status `json:"status"`
	Kind         string              `json:"kind"`
	// Execution and Round locate the first difference, Recorded and Decided are its two sides.
	Execution int    `json:"execution,omitempty"`
	Round     int    `json:"round,omitempty"`
	Recorded  string `json:"recorded,omitempty"`
	Decided   string `json:"decided,omitempty"`
	Error     string `json:"error"`
}

// text returns a line of text.
func (f replayFinding) text() string {
	verb := "would stall"
	if f.Kind == findingUnread {
		verb = "not read"
	}
	return fmt.Sprintf("%s: %s (%s): %s", verb, f.ID, f.Status, f.Error)
}

// group returns the common part of findings with one fix.
func (f replayFinding) group() string {
	name := f.Orchestrator
	if f.Version != "" {
		name += ", version " + f.Version
	}
	switch f.Kind {
	case findingDiffers:
		return fmt.Sprintf("%s: recorded is %s, the code decides %s", name, f.Recorded, f.Decided)
	case findingUnknown:
		return name + ": this program has no such orchestrator"
	default:
		return name + ": not read"
	}
}

// replays holds the selection and the findings of the command replay.
type replays struct {
	orchestrator string
	limit        int
	ended        int // days
	asJSON       bool
	now          func() time.Time
	out          io.Writer

	good, bad, broken int
	groups            []string       // in the order of their discovery
	count             map[string]int // by group
}

// replay runs the code of this program over the orchestrations in progress in storage, and lists those that it would
// stall. It changes nothing: its stores refuse writes.
func (m runner) replay(ctx context.Context, args []string, lookup func(string) (string, bool)) int {
	r := replays{now: time.Now, out: m.Stdout, count: map[string]int{}}
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(m.Stderr)
	flags.StringVar(&r.orchestrator, "orchestrator", "", "only those of this name; an engine's orchestrator has the engine's name")
	flags.IntVar(&r.limit, "limit", 0, "how many at most; 0 for all")
	flags.IntVar(&r.ended, "ended", 0, "also those that have ended within so many days, which a person may rewind")
	flags.BoolVar(&r.asJSON, "json", false, "print one JSON document")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil || flags.NArg() > 0 || r.limit < 0 || r.ended < 0:
		fmt.Fprintln(m.Stderr, "handler: replay takes -orchestrator NAME, -limit N, -ended DAYS, both 0 or more, and -json")
		return exitUsage
	}
	account, err := azure.FromEnvironment(lookup, settings.Storage)
	var h *Handler
	if err == nil {
		h, err = m.App.overStorage(account, lookup)
	}
	if err != nil {
		fmt.Fprintf(m.Stderr, "handler: replay: %v\n", err)
		return exitUsage
	}
	defer h.Close()
	fmt.Fprintf(m.Stderr, "Replaying what is in the %v.\n", account)
	if err := r.run(ctx, h.program.Runtime); err != nil {
		fmt.Fprintf(m.Stderr, "handler: replay: %v\n", err)
		return exitFailure
	}
	if r.bad+r.broken > 0 {
		return exitFailure
	}
	return exitOK
}

// overStorage returns the app over a storage account, read-only. It needs no other settings: their features are not
// used.
func (a App) overStorage(account azure.Account, lookup func(string) (string, bool)) (*Handler, error) {
	t, tablesErr := azure.NewTables(account)
	b, blobsErr := azure.NewBlobs(account)
	if err := errors.Join(tablesErr, blobsErr); err != nil {
		return nil, err
	}
	c := Config{Lookup: offline(lookup), Tables: readTables{t}, Queues: queues.NewMemory(), Blobs: readBlobs{b}}
	wrapping, err := payloadKeys(account, lookup)
	if err != nil {
		return nil, err
	}
	c.Keys = wrapping
	return New(a, c)
}

// payloadKeys decrypts payloads, if a key vault is set; nil without one. Nothing is encrypted here, so no key is
// named.
func payloadKeys(account azure.Account, lookup func(string) (string, bool)) (codec.Keys, error) {
	vault := settings.NewReader(lookup).Text(settings.KeyVault)
	if vault == "" {
		return nil, nil
	}
	credential, err := account.Identity()
	if err != nil {
		return nil, err
	}
	return keys.NewKeyVault(vault, "", credential, nil)
}

// run replays page by page and prints the findings. It keeps a page and the kinds of findings in memory.
func (r *replays) run(ctx context.Context, rt *orchestrator.Runtime) error {
	filter := orchestrator.Filter{Orchestrator: r.orchestrator}
	if r.ended == 0 {
		filter.Statuses = []orchestrator.Status{orchestrator.Pending, orchestrator.Running, orchestrator.Retrying, orchestrator.Suspended, orchestrator.Stalled}
	}
	if r.asJSON {
		fmt.Fprint(r.out, `{"items":[`)
	}
	for next, more := "", true; more && !r.enough(); more = next != "" {
		found, following, err := rt.List(ctx, filter, replayPage, next)
		if err != nil {
			return fmt.Errorf("list what is under way: %w", err)
		}
		next = following
		if err := r.page(ctx, rt, r.wanted(found)); err != nil {
			return err
		}
	}
	return r.conclude()
}

func (r *replays) seen() int    { return r.good + r.bad + r.broken }
func (r *replays) enough() bool { return r.limit > 0 && r.seen() >= r.limit }

// wanted filters orchestrations that ended too long ago or exceed the limit.
func (r *replays) wanted(found []orchestrator.Summary) []orchestrator.Summary {
	since := r.now().AddDate(0, 0, -r.ended)
	var wanted []orchestrator.Summary
	for _, s := range found {
		if (!s.Ended() || s.EndedAt.After(since)) && (r.limit == 0 || r.seen()+len(wanted) < r.limit) {
			wanted = append(wanted, s)
		}
	}
	return wanted
}

// page replays some orchestrations and records the results, in their order.
func (r *replays) page(ctx context.Context, rt *orchestrator.Runtime, page []orchestrator.Summary) error {
	findings, gone := make([]*replayFinding, len(page)), make([]bool, len(page))
	var group errgroup.Group
	group.SetLimit(replayAtOnce)
	for i, s := range page {
		group.Go(func() (err error) {
			findings[i], gone[i], err = replayed(ctx, rt, s)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, finding := range findings {
		switch {
		case gone[i]:
		case finding == nil:
			r.good++
		default:
			if err := r.note(*finding); err != nil {
				return err
			}
		}
	}
	return nil
}

// replayed replays one orchestration. An orchestration that ends or is purged meanwhile is no finding (gone), and one
// that changed during the read is read again.
func replayed(ctx context.Context, rt *orchestrator.Runtime, s orchestrator.Summary) (finding *replayFinding, gone bool, err error) {
	for range replayTries {
		err = rt.CheckReplay(ctx, s.ID)
		if err == nil {
			return nil, false, nil
		}
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		now, statusErr := rt.Status(ctx, s.ID)
		switch {
		case errors.Is(statusErr, orchestrator.ErrNotFound), statusErr == nil && now.Ended() && !s.Ended():
			return nil, true, nil
		case statusErr != nil || now.StateVersion == s.StateVersion && now.Execution == s.Execution:
			return findingOf(s, err), false, nil
		}
		s = now
	}
	return findingOf(s, err), false, nil
}

func findingOf(s orchestrator.Summary, err error) *replayFinding {
	f := &replayFinding{ID: s.ID, Orchestrator: s.Orchestrator, Version: s.Version, Status: s.Status, Kind: findingUnread, Error: err.Error()}
	if differs, ok := errors.AsType[*orchestrator.DeterminismError](err); ok {
		f.Kind, f.Execution, f.Round, f.Recorded, f.Decided = findingDiffers, differs.Execution, differs.Round, differs.Recorded, differs.Decided
	}
	if errors.Is(err, orchestrator.ErrUnknownOrchestrator) {
		f.Kind = findingUnknown
	}
	return f
}

// note counts a finding and prints it.
func (r *replays) note(f replayFinding) error {
	comma := r.bad+r.broken > 0
	if f.Kind == findingUnread {
		r.broken++
	} else {
		r.bad++
	}
	group := f.group()
	if r.count[group] == 0 && len(r.groups) < replayGroups {
		r.groups = append(r.groups, group)
		r.count[group] = 0
	}
	if _, counted := r.count[group]; counted {
		r.count[group]++
	}
	if !r.asJSON {
		_, err := fmt.Fprintln(r.out, f.text())
		return err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	between := "\n"
	if comma {
		between = ",\n"
	}
	_, err = fmt.Fprintf(r.out, "%s%s", between, text)
	return err
}

// conclude prints the totals.
func (r *replays) conclude() error {
	if !r.asJSON {
		for _, group := range r.groups {
			fmt.Fprintf(r.out, "%6d of %s\n", r.count[group], group)
		}
		_, err := fmt.Fprintf(r.out, "%d orchestrations are under way: %d go on with this code, %d would stall, %d could not be read.\n", r.seen(), r.good, r.bad, r.broken)
		return err
	}
	type sum struct {
		Group string `json:"group"`
		Count int    `json:"count"`
	}
	groups := []sum{}
	for _, group := range r.groups {
		groups = append(groups, sum{group, r.count[group]})
	}
	text, err := json.Marshal(groups)
	if err == nil {
		_, err = fmt.Fprintf(r.out, "],\n\"groups\":%s,\n\"checked\":%d,\"goOn\":%d,\"wouldStall\":%d,\"notRead\":%d}\n", text, r.seen(), r.good, r.bad, r.broken)
	}
	return err
}
