package handler

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/vibedata/roundhouse/handler/settings"
)

const (
	// ownSettings is the prefix of the app's own settings.
	ownSettings = "ROUNDHOUSE_"
	// typos is the maximum number of wrong letters of a mistyped name.
	typos = 2
)

// unusable lists the settings that can never work, each with the reason and the remedy, sorted. The app starts with
// them, because everything else works. No text has a value that may be a secret. It sends nothing.
func (p *parts) unusable() []string {
	var found []string
	add := func(setting, format string, args ...any) {
		found = append(found, setting+": "+fmt.Sprintf(format, args...))
	}
	for _, j := range p.pollers.jobs {
		if err := j.source.Validate(); err != nil {
			add(settings.Pollers, "poller %s: %s", j.setting.Name, oneLine(err))
			continue
		}
		name := j.setting.Connection.Setting
		if name == "" {
			continue // only the vault has it
		}
		dsn := p.reader.Text(name)
		if dsn == "" {
			add(settings.Pollers, "poller %s: the setting %s is not set: set it to the connection string", j.setting.Name, name)
			continue
		}
		source, err := j.source.Open(dsn)
		if err != nil {
			add(settings.Pollers, "poller %s: setting %s: %s", j.setting.Name, name, oneLine(err))
			continue
		}
		if err := source.Close(); err != nil {
			p.log.Warn("a source that was only looked at was not closed", "poller", j.setting.Name, "error", err.Error())
		}
	}
	routed := map[string]bool{}
	for _, r := range p.settings.Outbox.Routes {
		routed[r.Destination] = true
	}
	for _, name := range slices.Sorted(maps.Keys(p.settings.Outbox.Destinations)) {
		if !routed[name] {
			add("ROUNDHOUSE_OUTBOX", "destinations.%s: no route leads to it, so its audience, keys and address are not used: add a route or remove it", name)
		}
	}
	if p.settings.Instance.TenantID != "" && p.settings.Instance.ID == "" {
		add("ROUNDHOUSE_TENANT_ID", "it is the owner of ROUNDHOUSE_INSTANCE_ID, which is not set: set both or neither")
	}
	if a := p.settings.Access; !a.EasyAuth && !a.Development && p.reader.Text("ROUNDHOUSE_ROLES") != "" && a.Policy.HomeTenant != "" {
		add("ROUNDHOUSE_ROLES", "no caller can sign in and have a role: turn on the authentication of the platform, which sets WEBSITE_AUTH_ENABLED")
	}
	known := p.reader.Names()
	for _, name := range p.reader.Environment {
		folded := strings.ToUpper(name)
		if !strings.HasPrefix(folded, ownSettings) || slices.Contains(known, folded) {
			continue
		}
		for _, meant := range known {
			if strings.HasPrefix(meant, ownSettings) && p.reader.Text(meant) == "" && edits(folded, meant) <= typos {
				add(name, "nothing reads it: rename it to %s or remove it", meant)
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// warnUnusable logs the unusable settings.
func warnUnusable(log *slog.Logger, found []string) {
	for _, text := range found {
		log.Warn("setting can never work", "reason", text)
	}
}

// oneLine returns the text of an error without line ends.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// edits returns the number of letters to insert, remove or replace to convert a to b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := left
			if a[i] != b[j] {
				next = 1 + min(left, row[j], row[j+1])
			}
			left, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
