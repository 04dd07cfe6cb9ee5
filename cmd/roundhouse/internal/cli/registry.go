package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/client"
)

func (a *app) registryCommands() *cobra.Command {
	list := listCommand(a, listing[client.InstanceItem]{
		spec: spec{use: "list [flags]", short: "List the managed instances"},
		path: []string{"registry"},
		open: a.either,
		none: "There are no such instances in the registry.",
		filters: []filter{
			{flag: "tenant", param: "tenantId", usage: "only those of this `tenant`"},
			{flag: "ring", param: "ring", usage: "only those of this `ring`"},
			{flag: "locked", param: "locked", usage: "`true`: only those whose lock somebody holds, false: the others", values: []string{"true", "false"}},
		},
		columns: []column[client.InstanceItem]{
			{title: "INSTANCE", text: func(i client.InstanceItem) string { return i.InstanceID }},
			{title: "TENANT", text: func(i client.InstanceItem) string { return i.TenantID }},
			{title: "RING", text: func(i client.InstanceItem) string { return i.Ring }},
			{title: "VERSION", text: func(i client.InstanceItem) string { return i.Version }},
			{title: "LOCK", text: held, cut: true},
		},
	})
	return group("registry", "The managed instances", `Show the managed instances, and change what people say of them
(docs/registry.md). With --storage, all but unlock works without the app.`,
		list, a.showCommand("INSTANCE", "Show an instance with its document", a.either, "registry"),
		a.addCommand(), a.setCommand(), a.drainInstanceCommand(), a.resumeCommand(), a.unlockCommand(), a.removeCommand())
}

// held returns the holder of an instance's lock.
func held(i client.InstanceItem) string {
	switch {
	case i.Damaged != "":
		return "the document is damaged"
	case i.Lock.DrainedBy != "":
		return "drained until " + at(i.Lock.Until) + " by " + i.Lock.DrainedBy
	case i.Lock.Held:
		return "until " + at(i.Lock.Until) + " by " + i.Lock.JobID
	default:
		return ""
	}
}

// fields are the flags for the fields of an instance.
type fields struct{ tenant, ring, events, patch string }

func (f *fields) register(c *cobra.Command) {
	c.Flags().StringVar(&f.tenant, "tenant", "", "the `tenant` that it belongs to")
	c.Flags().StringVar(&f.ring, "ring", "", "the `ring` whose releases it gets")
	c.Flags().StringVar(&f.events, "events", "", "the https `address` where events for it are posted")
	c.Flags().StringVar(&f.patch, "patch", "", "more fields, a merge patch as `JSON`, @file, or - for standard input")
}

// body returns the merge patch of the flags.
func (f *fields) body(a *app) (map[string]any, error) {
	body := map[string]any{}
	text, err := a.input("patch", f.patch)
	if err != nil {
		return nil, err
	}
	if text != nil && json.Unmarshal(text, &body) != nil || body == nil {
		return nil, Mark(ErrUsage, errors.New("--patch is no JSON object"))
	}
	for name, value := range only(map[string]string{"tenantId": f.tenant, "ring": f.ring}) {
		body[name] = value
	}
	if f.events != "" {
		endpoints, _ := body["endpoints"].(map[string]any)
		if endpoints == nil {
			endpoints = map[string]any{}
		}
		endpoints["events"] = f.events
		body["endpoints"] = endpoints
	}
	return body, nil
}

func (a *app) addCommand() *cobra.Command {
	var f fields
	c := a.command(spec{
		use: "add INSTANCE [flags]", short: "Add an instance",
		long:    "Add an instance. To add the same again changes nothing.",
		example: `  roundhouse registry add contoso-1 --tenant contoso --ring early`,
		args:    cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			body, err := f.body(a)
			if err != nil {
				return err
			}
			body["instanceId"] = args[0]
			return a.tell(ctx, a.either, post(body, "registry"))
		},
	})
	f.register(c)
	return c
}

func (a *app) setCommand() *cobra.Command {
	var f fields
	var version int64
	c := a.command(spec{
		use: "set INSTANCE [flags]", short: "Change what people say of an instance",
		long: `Change what people say of an instance: its tenant, ring and endpoints, its
engineTablesConfig, and fields of your own. What engines write is refused. In
--patch, null takes a field away.`,
		example: `  roundhouse registry set contoso-1 --ring stable
  roundhouse registry set contoso-1 --patch '{"contact": {"name": "Ann"}}'`,
		args: cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			body, err := f.body(a)
			if err != nil {
				return err
			}
			if len(body) == 0 {
				return Mark(ErrUsage, errors.New("say what is to change: --ring, --tenant, --events or --patch"))
			}
			r := client.Request{Method: http.MethodPatch, Path: []string{"registry", args[0]}, Body: body}
			if version > 0 {
				r.IfMatch = strconv.Quote(strconv.FormatInt(version, 10))
			}
			return a.tell(ctx, a.either, r)
		},
	})
	f.register(c)
	c.Flags().Int64Var(&version, "if-version", 0, "only if the registryVersion is this `number` still")
	return c
}

// guardedInstance makes a command that changes an instance, and shows its current state first.
func (a *app) guardedInstance(s spec, open opener, what string, effect func(client.InstanceItem) string, request func(id string) client.Request) *cobra.Command {
	var g guards
	s.args = cobra.ExactArgs(1)
	s.run = func(ctx context.Context, args []string) error {
		c, err := open(ctx)
		if err != nil {
			return err
		}
		i, err := look[client.InstanceItem](ctx, a, c, nil, "registry", args[0])
		if err != nil {
			return err
		}
		before := "before: not locked"
		if lock := held(i); lock != "" {
			before = "before: " + lock
		}
		d := danger{what: what + " the instance " + i.InstanceID, name: i.InstanceID, effect: []string{before, "after:  " + effect(i)}, storage: a.flags.storage != ""}
		return a.guarded(ctx, g, d, func(ctx context.Context) error { return a.tell(ctx, open, request(i.InstanceID)) })
	}
	c := a.command(s)
	g.register(c.Flags())
	return c
}

func (a *app) drainInstanceCommand() *cobra.Command {
	var forTime time.Duration
	var reason string
	c := a.guardedInstance(spec{
		use: "drain INSTANCE [flags]", short: "Take its lock, so that engines leave it alone",
		long: `Take the lock of an instance, so that engines leave it alone: their messages
wait, and lose no attempt, until you resume it or the time is over. It is
refused while an engine works on the instance.`,
		example: `  roundhouse registry drain contoso-1 --for 2h --reason "the network is moved"`,
	}, a.either, "drain", func(client.InstanceItem) string {
		return fmt.Sprintf("messages for it wait, for %v from now on", forTime)
	}, func(id string) client.Request {
		body := map[string]any{"forSeconds": int(forTime / time.Second)}
		if reason != "" {
			body["reason"] = reason
		}
		return post(body, "registry", id, "drain")
	})
	c.Flags().DurationVar(&forTime, "for", time.Hour, "for how long, a week (168h) at most")
	c.Flags().StringVar(&reason, "reason", "", "why: the `text` is kept in the audit log")
	return c
}

func (a *app) resumeCommand() *cobra.Command {
	return a.command(spec{
		use: "resume INSTANCE", short: "Give the lock of a drain back", args: cobra.ExactArgs(1),
		run: func(ctx context.Context, args []string) error {
			return a.tell(ctx, a.either, post(map[string]any{}, "registry", args[0], "resume"))
		},
	})
}

func (a *app) unlockCommand() *cobra.Command {
	return a.guardedInstance(spec{
		use: "unlock INSTANCE [flags]", short: "Take off the lock of a job that does not run any more",
		long: `Take off the lock of a job that does not run any more. The app looks whether
an orchestration runs as the job, and refuses while one does: terminate that
with roundhouse orchestration terminate, which gives the lock back.`,
	}, a.api, "unlock", func(client.InstanceItem) string { return "not locked: another job may change it" },
		func(id string) client.Request { return post(map[string]any{}, "registry", id, "unlock") })
}

func (a *app) removeCommand() *cobra.Command {
	return a.guardedInstance(spec{
		use: "remove INSTANCE [flags]", short: "Remove an instance from the registry",
		long: `Remove an instance from the registry, and nothing else: history, dead letters,
orchestrations and secrets of it stay. It is refused while somebody else holds
its lock.`,
	}, a.either, "remove", func(client.InstanceItem) string {
		return "not in the registry: engines refuse what comes for it; nothing else is removed"
	}, func(id string) client.Request {
		return client.Request{Method: http.MethodDelete, Path: []string{"registry", id}}
	})
}
