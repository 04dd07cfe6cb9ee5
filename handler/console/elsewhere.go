package console

import (
	"net/url"
	"regexp"
	"strings"
)

// elsewhere is how to get what a page shows without the console.
type elsewhere struct {
	// ID names the one thing that the page is about, "" on others.
	ID Text
	// Command does the same in a shell, and Curl asks the API for it, with the name of a variable where the key belongs; "" for none.
	Command, Curl Text
}

// listFlags are the flags of the command line for the parameters of lists, in the order in which commands have them.
func listFlags() [][2]string {
	return [][2]string{
		{"engine", "engine"}, {"status", "status"}, {"by", "by"}, {"orchestrator", "orchestrator"}, {"idPrefix", "prefix"}, {"tag", "tag"}, {"customStatus", "custom-status"},
		{"instanceId", "instance"}, {"correlationId", "correlation-id"}, {"errorSignature", "signature"}, {"tenant", "tenant"}, {"tenantId", "tenant"},
		{"eventType", "event-type"}, {"ring", "ring"}, {"locked", "locked"}, {"schedule", "schedule"}, {"item", "item"}, {"assignee", "assignee"}, {"role", "role"},
		{"dueBefore", "due-before"}, {"target", "target"}, {"principal", "principal"}, {"fromDate", "from"}, {"toDate", "to"}, {"continuationToken", "continue"},
	}
}

// thing is where else one thing is, which the page has asked for first. The words are those of the command, and an id that looks like a flag
// goes behind the flags.
func (v *visit) thing(id Text, command Text) *elsewhere {
	e := &elsewhere{Command: command, Curl: v.curl()}
	if id.String() == string(id) { // or what is copied would be another one
		e.ID = id
	}
	return e
}

// list is where else a list is: the command has the flags of what the API was asked for.
func (v *visit) list(command ...string) *elsewhere {
	words := append([]string{"roundhouse"}, command...)
	if _, query, ok := strings.Cut(v.seen.asked(), "?"); ok {
		asked, err := url.ParseQuery(query)
		if err != nil {
			return &elsewhere{Curl: v.curl()} // unreachable: the page has written it
		}
		for _, f := range listFlags() {
			if value := asked.Get(f[0]); value != "" {
				words = append(words, "--"+f[1]+"="+value)
			}
		}
	}
	return &elsewhere{Command: commandLine(words...), Curl: v.curl()}
}

// showLine is a command that shows one thing by its ids. Where one looks like a flag, they go behind a sign that no flags follow.
func showLine(command string, ids ...string) Text {
	words := append([]string{"roundhouse"}, strings.Fields(command)...)
	for _, id := range ids {
		if strings.HasPrefix(id, "-") {
			words = append(words, "--")
			break
		}
	}
	return commandLine(append(words, ids...)...)
}

// plainHost is what the name of a host has.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.\[\]:-]+$`)

// curl asks the API what the page has asked it first, at the address for keys. The key is a variable of the shell: no page has one.
func (v *visit) curl() Text {
	host, asked := browserHost(v.r), v.seen.asked()
	path, ok := strings.CutPrefix(asked, "/api/")
	if !ok || !plainHost.MatchString(host) {
		return ""
	}
	scheme := "https"
	if v.console.config.Control.Development {
		scheme = "http"
	}
	address := commandLine(scheme + "://" + host + "/api/machine/" + path)
	if address == "" {
		return ""
	}
	return `curl -H "x-functions-key: $ROUNDHOUSE_KEY" ` + address
}
