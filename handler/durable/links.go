package durable

import (
	"net/http"
	"net/url"
	"strings"
)

// What taskHub and connection are called in links; nothing depends on them.
const (
	defaultTaskHub    = "Roundhouse"
	defaultConnection = "Storage"
)

// links is how a client goes on with an instance.
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

// checkStatus is the answer to what has begun: where to look, and when.
func (in *call) checkStatus(id string) answer {
	path := in.base + "/instances/" + url.PathEscape(id)
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

// suffix is what every link has in its query: the caller's key, too, if the query had it.
func (in *call) suffix() string {
	parts := []string{"taskHub=" + url.QueryEscape(in.or("taskHub", defaultTaskHub)), "connection=" + url.QueryEscape(in.or("connection", defaultConnection))}
	if code := in.text("code"); code != "" {
		parts = append(parts, "code="+url.QueryEscape(code))
	}
	return strings.Join(parts, "&")
}

func (in *call) or(name, otherwise string) string {
	if value := strings.TrimSpace(in.text(name)); value != "" {
		return value
	}
	return otherwise
}
