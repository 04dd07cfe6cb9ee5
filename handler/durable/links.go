package durable

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/urlpath"
)

// The names of taskHub and connection in links; nothing depends on them.
const (
	defaultTaskHub    = "Roundhouse"
	defaultConnection = "Storage"
)

// links are the links of an instance for its client.
type links struct {
	ID                    string `json:"id"`
	StatusQueryGetURI     string `json:"statusQueryGetUri"`
	SendEventPostURI      string `json:"sendEventPostUri"`
	TerminatePostURI      string `json:"terminatePostUri"`
	PurgeHistoryDeleteURI string `json:"purgeHistoryDeleteUri"`
	RestartPostURI        string `json:"restartPostUri"`
	SuspendPostURI        string `json:"suspendPostUri"`
	ResumePostURI         string `json:"resumePostUri"`
}

// checkStatus returns the answer to a start: the polling address, and the interval.
func (in *call) checkStatus(id string) answer {
	path := in.base + "/instances/" + urlpath.Escape(id)
	suffix := in.suffix()
	reason := "?reason={text}&" + suffix
	l := links{
		ID:                    id,
		StatusQueryGetURI:     path + "?" + suffix,
		SendEventPostURI:      path + "/raiseEvent/{eventName}?" + suffix,
		TerminatePostURI:      path + "/terminate" + reason,
		PurgeHistoryDeleteURI: path + "?" + suffix,
		RestartPostURI:        path + "/restart?" + suffix,
		SuspendPostURI:        path + "/suspend" + reason,
		ResumePostURI:         path + "/resume" + reason,
	}
	out := document(http.StatusAccepted, l)
	out.header = map[string]string{"Location": l.StatusQueryGetURI, "Retry-After": "10"}
	return out
}

// suffix returns the query of every link. It does not contain the caller's key: links are logged, stored and passed
// on.
func (in *call) suffix() string {
	return "taskHub=" + url.QueryEscape(in.or("taskHub", defaultTaskHub)) + "&connection=" + url.QueryEscape(in.or("connection", defaultConnection))
}

// again returns the path and the query of the request itself, without the caller's key.
func (in *call) again() string {
	var parts []string
	for part := range strings.SplitSeq(in.http.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); part != "" && (err != nil || !strings.EqualFold(name, "code")) {
			parts = append(parts, part)
		}
	}
	path := in.base
	for _, segment := range in.path {
		path += "/" + urlpath.Escape(segment)
	}
	if len(parts) == 0 {
		return path
	}
	return path + "?" + strings.Join(parts, "&")
}

// outside returns a path for the caller: below the address for machines, if the request came to that.
func (in *call) outside(path string) string {
	if rest, ok := strings.CutPrefix(path, "/api/"); ok && access.FromMachine(in.ctx) {
		return access.MachinePrefix + rest
	}
	return path
}

func (in *call) or(name, otherwise string) string {
	if value := strings.TrimSpace(in.text(name)); value != "" {
		return value
	}
	return otherwise
}
