package console

import (
	"net/url"
	"regexp"
	"strings"
)

// elsewhere describes the same data outside the console.
type elsewhere struct {
	// ID is the id of the page's single subject, "" without one.
	ID Text
	// Command is the shell command, and Curl the API request, with a variable in place of the key; "" for none.
	Command, Curl Text
}

// listFlags are the flags of the command line for the parameters of lists, in the order of the commands.
func listFlags() [][2]string {
	return [][2]string{
		{"engine", "engine"}, {"status", "status"}, {"by", "by"}, {"orchestrator", "orchestrator"}, {"idPrefix", "prefix"}, {"tag", "tag"}, {"customStatus", "custom-status"},
		{"instanceId", "instance"}, {"correlationId", "correlation-id"}, {"errorSignature", "signature"}, {"tenant", "tenant"}, {"tenantId", "tenant"},
		{"eventType", "event-type"}, {"ring", "ring"}, {"locked", "locked"}, {"schedule", "schedule"}, {"item", "item"}, {"assignee", "assignee"}, {"role", "role"},
		{"dueBefore", "due-before"}, {"target", "target"}, {"principal", "principal"}, {"fromDate", "from"}, {"toDate", "to"}, {"continuationToken", "continue"},
	}
}

// thing returns that of one subject, which the page has requested first. The words are those of the command, and an id
// that looks like a flag goes after the flags.
func (v *visit) thing(id Text, command Text) *elsewhere {
	e := &elsewhere{Command: command, Curl: v.curl()}
	if id.String() == string(id) { // otherwise a different text would be copied
		e.ID = id
	}
	return e
}

// list returns that of a list: the command has the flags of the API request.
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

// showLine returns a command that shows one object by its ids. Ids that look like flags go after a sign that ends the
// flags.
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

// plainHost matches the characters of a host name.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.\[\]:-]+$`)

// curl returns the page's first API request, at the address for keys. The key is a shell variable: no page has one.
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
