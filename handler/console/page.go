package console

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vibedata/roundhouse/handler/access"
)

//go:embed templates
var templateFiles embed.FS

// page is the result of a visitor.
type page struct {
	// template names the file of the folder templates, and model is its data.
	template, title string
	model           any
	// status is that of the answer, 0 for 200, and code a one-word reason for a failure.
	status int
	code   string
	// retryAfter is the header of that name, "" for none.
	retryAfter string
	// to is an address to go on at, in place of a page; "" for none.
	to string
	// file is the answer in place of a page, nil for a page.
	file *file
	// refresh is the interval at which the browser reloads the page, and live the minimum interval at which it polls for
	// news, which it announces without reloading; 0 for never.
	refresh, live time.Duration
	// elsewhere describes the same data outside the console, nil for none.
	elsewhere *elsewhere
	// same means that the browser has the page already.
	same bool
}

// file is an answer that a browser saves.
type file struct {
	// disposition is the header for that, with the name of the file.
	disposition, contentType string
	body                     []byte
}

// view is the data of every template: the common parts of all pages, and the page's own model as Page.
type view struct {
	Title string
	// Section is the path of the section that the page belongs to.
	Section             string
	Me                  me
	Now                 time.Time
	Style, Script, Icon string
	// Modules are the addresses of the modules of the script at Start.
	Modules []string
	Start   string
	// Tag is the ETag of a page that polls at an interval in seconds, "" for others. Follow is Every of a page that
	// reloads itself.
	Tag           string
	Every, Follow int
	Elsewhere     *elsewhere
	Page          any
}

// section is a part of the console in the navigation.
type section struct{ Path, Name string }

// Letter returns the key that leads to it after a g: the first letter of its name that no earlier section has.
func (s section) Letter() string {
	taken := ""
	for _, other := range (view{}).Sections() {
		for _, letter := range strings.ToLower(other.Name) {
			if !strings.ContainsRune(taken, letter) {
				if other == s {
					return string(letter)
				}
				taken += string(letter)
				break
			}
		}
	}
	return "" // unreachable while names have unique letters
}

// Sections returns the parts of the console.
func (view) Sections() []section {
	return []section{{Root, "Home"}, {tasksPath, "Tasks"}, {causesPath, "Dead letters"}, {orchestrationsPath, "Orchestrations"}, {timelinePath, "Timeline"}, {outboxPath, "Outbox"}, {pollersPath, "Pollers"}, {operationsPath, "Operations"},
		{schedulesPath, "Schedules"}, {registryPath, "Registry"}, {auditPath, "Audit"}, {mePath, "Me"}}
}

// At returns a time for display.
func (v view) At(t time.Time) Moment { return Moment{t, v.Now} }

// Missing returns the permission if the user lacks it, otherwise "".
func (v view) Missing(need access.Permission) access.Permission {
	if slices.Contains(v.Me.Permissions, need) {
		return ""
	}
	return need
}

// me is the user of a page, with their permissions.
type me struct {
	Kind        string              `json:"kind"`
	ID          Text                `json:"id"`
	Name        Text                `json:"name"`
	Scope       Text                `json:"scope"`
	Permissions []access.Permission `json:"permissions"`
	// AppRoles are the roles of human tasks.
	AppRoles []Text `json:"appRoles"`
}

// may reports whether the user has a permission.
func (v *visit) may(need access.Permission) bool { return slices.Contains(v.me.Permissions, need) }

// templates are the pages by the names of their files, each with the layout around it.
type templates struct{ byName map[string]*template.Template }

// builtTemplates loads the pages once: they are the same in each process.
var builtTemplates = sync.OnceValues(loadTemplates)

func loadTemplates() (*templates, error) {
	shared, err := template.New("layout").ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", "templates/everywhere.html")
	if err != nil {
		return nil, fmt.Errorf("read the layout: %w", err)
	}
	out := &templates{byName: map[string]*template.Template{}}
	for _, name := range []string{"home", "letters", "causes", "letter", "decide", "timeline", "failed", "outside", "orchestrations", "orchestration", "command",
		"tasks", "task", "taskact", "me", "audit", "schedules", "registry", "instance", "confirm", "bulk", "operation", "operations", "outbox", "event", "eventact", "pollers", "poller", "polleract", "start", "startform", "openhistory", "purge",
		"edit", "editdiff"} {
		own, err := shared.Clone()
		if err == nil {
			_, err = own.ParseFS(templateFiles, "templates/"+name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("read the page %s: %w", name, err)
		}
		out.byName[name] = own
	}
	return out, nil
}

// show answers with a page.
func (c *Console) show(w http.ResponseWriter, r *http.Request, v *visit, p page) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if p.same {
		h.Set("ETag", r.Header.Get("If-None-Match"))
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if p.to != "" {
		h.Set("Location", p.to)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	if p.file != nil {
		h.Set("Content-Disposition", p.file.disposition)
		h.Set("Content-Type", p.file.contentType)
		write(w, r, http.StatusOK, p.file.body, nil)
		return
	}
	if p.code != "" {
		h.Set("x-ms-error-code", p.code)
	}
	if p.retryAfter != "" {
		h.Set("Retry-After", p.retryAfter)
	}
	tag, same := c.tell(w, v, p)
	if same {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if p.code != "" {
		p.elsewhere = nil // an error here also occurs outside
	}
	var body bytes.Buffer
	err := c.pages.byName[p.template].ExecuteTemplate(&body, "layout.html", view{Title: p.title, Section: sectionOf(r.URL.Path), Me: v.me, Now: c.config.Now().UTC(),
		Style: c.assets.paths["console.css"], Script: c.assets.paths["console.js"], Icon: c.assets.paths["icon.svg"], Modules: c.assets.modules, Start: c.assets.paths["modules/main.js"],
		Tag: tag, Every: int(p.again() / time.Second), Follow: int(p.refresh / time.Second), Elsewhere: p.elsewhere, Page: p.model})
	if err != nil { // unreachable unless a template does not fit its model, which golden pages and outlines would show
		http.Error(w, "The page cannot be written.", http.StatusInternalServerError)
		return
	}
	var gzipped []byte
	if acceptsGzip(r) {
		if gzipped, err = compress(body.Bytes()); err != nil {
			gzipped = nil // unreachable: a buffer never fails
		}
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", "Accept-Encoding")
	write(w, r, cmp.Or(p.status, http.StatusOK), body.Bytes(), gzipped)
}

// sectionOf returns the path of the section of a path.
func sectionOf(path string) string {
	switch {
	case path == lettersPath || strings.HasPrefix(path, lettersPath+"/"):
		return causesPath
	case path == openPath, path == purgePath, path == startPath || strings.HasPrefix(path, startPath+"/"):
		return orchestrationsPath
	default:
		for _, s := range (view{}).Sections() {
			if s.Path != Root && strings.HasPrefix(path, s.Path+"/") {
				return s.Path
			}
		}
		return path
	}
}

// failure is the model of an error page.
type failure struct {
	Message Text
	// CorrelationID is the request's correlation id in the log.
	CorrelationID Text
	// Back is an address to return to, "" for none, and BackTo its name.
	Back, BackTo string
	// Next is the address of a remedy, "" for none, and NextTo its name.
	Next, NextTo string
}

// failedPage returns the page of an error.
func failedPage(err error) page {
	e, ok := asAPIError(err)
	if !ok {
		return refusedPage(http.StatusInternalServerError, "InternalError", "The page could not be made. "+Text(err.Error()))
	}
	p := refusedPage(e.Status, e.Code, e.Message)
	p.model, p.retryAfter = failure{Message: e.Message, CorrelationID: Text(e.CorrelationID)}, e.RetryAfter
	return p
}

// refusedPage returns the page of a refusal.
func refusedPage(status int, code string, why Text) page {
	return page{template: "failed", title: http.StatusText(status), status: status, code: code, model: failure{Message: why}}
}

// address returns a path of the console with a query of the nonempty values.
func address(path string, query url.Values) string {
	kept := url.Values{}
	for name, values := range query {
		if len(values) > 0 && values[0] != "" {
			kept.Set(name, values[0])
		}
	}
	if len(kept) == 0 {
		return path
	}
	return path + "?" + kept.Encode()
}

// Moment is a displayed time.
type Moment struct{ at, now time.Time }

// IsZero reports whether it is not set.
func (m Moment) IsZero() bool { return m.at.IsZero() }

// ISO returns the time for programs.
func (m Moment) ISO() string { return m.at.UTC().Format(time.RFC3339Nano) }

// Text returns the displayed time.
func (m Moment) Text() string { return m.at.UTC().Format("2006-01-02 15:04:05 UTC") }

// Ago returns the time since it, or until it.
func (m Moment) Ago() string {
	if m.at.After(m.now) {
		return "in " + span(m.at.Sub(m.now))
	}
	return span(m.now.Sub(m.at)) + " ago"
}

// span returns a displayed duration, in its largest unit.
func span(d time.Duration) string {
	for _, unit := range []struct {
		is   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.is; n == 1 {
			return "1 " + unit.name
		} else if n > 1 {
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
