package console

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/vibedata/roundhouse/handler/access"
	"github.com/vibedata/roundhouse/internal/browser"
)

var update = flag.Bool("update", false, "write the golden pages and the outlines of the others")

// shown is a page under test: the API's answers, the browser's request, and the status of the page.
type shown struct {
	api     http.Handler
	control access.Control
	target  string
	status  int
	// code is in a header of an error page, and refresh the polling interval of a page in seconds.
	code, refresh string
	// form is the sent form, and files those of a form with files; nil for a page that is only requested.
	form  url.Values
	files [][2]string
}

// at returns a page for a signed-in user. A page with a file in testdata/golden is compared with that file, and another
// one with its outline.
func at(a http.Handler, target string, status int, refresh ...string) shown {
	return shown{api: a, control: access.Control{EasyAuth: true}, target: target, status: status, refresh: strings.Join(refresh, "")}
}

func (s shown) sends(form url.Values) shown      { s.form = form; return s }
func (s shown) uploads(files ...[2]string) shown { s.files = files; return s }
func (s shown) refused(code string) shown        { s.code = code; return s }

// ask requests the page from a console.
func (s shown) ask(t *testing.T) *httptest.ResponseRecorder {
	t.Helper()
	c := restoring(newConsole(t, s.api, s.control))
	switch {
	case s.form != nil:
		return send(t, c, s.target, s.form)
	case s.files != nil:
		return upload(t, c, s.target, s.files...)
	default:
		return get(t, c, s.target)
	}
}

// areas are the pages of the sections of the console.
func areas() map[string]map[string]shown {
	return map[string]map[string]shown{"home": homePages(), "deadletters": joined(letterPages(), heldPages(), selectedPages(), editPages()), "bulk": joined(bulkPages(), operationPages()),
		"outbox": outboxPages(), "orchestrations": joined(orchestrationPages(), purgePages(), historyPages()), "start": startPages(), "tasks": taskPages(), "platform": joined(platformPages(), ownPages()),
		"pollers": pollerPages()}
}

func joined(all ...map[string]shown) map[string]shown {
	out := map[string]shown{}
	for _, pages := range all {
		maps.Copy(out, pages)
	}
	return out
}

// Each page equals its golden file, or has its recorded outline: with data and without, for all permitted users, with
// the API's refusals, and with malicious data. After an intended change, run this test with -update. It writes the
// outline of a new page; an empty file in testdata/golden makes a golden page of it, and "like OTHER" after its name
// the difference from another one.
func TestPages(t *testing.T) {
	t.Parallel()
	for area, pages := range areas() {
		t.Run(area, func(t *testing.T) {
			t.Parallel()
			want := readOutlines(t, area)
			got := map[string][]string{}
			for name, page := range pages {
				rec := page.ask(t)
				body := rec.Body.String()
				if code := rec.Header().Get("x-ms-error-code"); rec.Code != page.status || page.code != "" && code != page.code || asksAgain(body) != page.refresh {
					t.Errorf("%s: %d %s and again after %q, want %d %s and %q", name, rec.Code, code, asksAgain(body), page.status, page.code, page.refresh)
				}
				harmless(t, name, body)
				got[name] = outline(t, body)
				if file := goldenFile(name); isGolden(file) {
					compare(t, file, body)
				} else if _, ok := want[name]; !ok {
					want[name] = variant{} // to be written, or missing
				}
			}
			if *update {
				writeOutlines(t, area, want, got)
				return
			}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if diff := cmp.Diff(want[name].lines, want[name].of(name, got)); diff != "" {
					t.Errorf("%s differs from %s (-want +got):\n%s%s", name, outlinesOf(area), upper(diff), updates)
				}
			}
		})
	}
}

// updates is the hint below a difference.
const updates = "\nIf that is intended: go test ./handler/console -run '^TestPages$' -update"

// upper returns the beginning of a difference.
func upper(diff string) string {
	lines := strings.SplitAfterN(diff, "\n", 25)
	return strings.Join(lines[:min(len(lines), 24)], "")
}

func goldenFile(name string) string { return filepath.Join("testdata", "golden", name+".html") }

func isGolden(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// variant is the record of a page without a golden file: its outline, the lines that it has more and less than the page
// named in like, or the number of malicious texts where like is "counted".
type variant struct {
	like  string
	lines []string
}

// of returns the lines to record of a page.
func (v variant) of(name string, outlines map[string][]string) (lines []string) {
	switch of := outlines[name]; {
	case v.like == "":
		return of
	case v.like == "counted":
		text := strings.Join(of, "\n")
		return []string{fmt.Sprintf("%d EVIL, %d TURNING in %d lines", strings.Count(text, "EVIL"), strings.Count(text, "TURNING"), len(of))}
	default:
		for _, l := range diffOf(strings.Join(outlines[v.like], "\n"), strings.Join(of, "\n")).Lines {
			if sign := map[string]string{"removed": "- ", "added": "+ "}[l.Kind]; sign != "" {
				lines = append(lines, sign+string(l.Text))
			}
		}
		if lines == nil {
			lines = []string{"the same"}
		}
		return lines
	}
}

func outlinesOf(area string) string { return filepath.Join("testdata", "outlines", area+".txt") }

// readOutlines reads the records of an area: "@ NAME" or "@ NAME like OTHER" before the lines of each page.
func readOutlines(t *testing.T, area string) map[string]variant {
	t.Helper()
	out := map[string]variant{}
	text, err := os.ReadFile(outlinesOf(area))
	if err != nil && !*update {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq("\n"+string(text), "\n@ ") {
		head, lines, _ := strings.Cut(strings.TrimSuffix(part, "\n"), "\n")
		if name, like, _ := strings.Cut(head, " like "); name != "" {
			out[name] = variant{like, strings.Split(lines, "\n")}
		}
	}
	return out
}

func writeOutlines(t *testing.T, area string, of map[string]variant, outlines map[string][]string) {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if lines := of[name].of(name, outlines); len(lines) > 0 && !isGolden(goldenFile(name)) {
			fmt.Fprintf(&text, "@ %s\n%s\n", strings.TrimSuffix(name+" like "+of[name].like, " like "), strings.Join(lines, "\n"))
		}
	}
	err := os.MkdirAll(filepath.Dir(outlinesOf(area)), 0o755)
	if err == nil {
		err = os.WriteFile(outlinesOf(area), []byte(text.String()), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var (
	tagOfPage  = regexp.MustCompile(`data-tag="[^"]+"`)
	sameAtHead = regexp.MustCompile(`<link rel="modulepreload"[^\n]*\n`)
	sameAtEnd  = regexp.MustCompile(`(?s)<div id="choices".*</body>`)
)

// compare compares a page with its golden file.
func compare(t *testing.T, file, got string) {
	t.Helper()
	assets, err := builtAssets()
	if err != nil {
		t.Fatal(err)
	}
	for asset, path := range assets.paths { // hashes are ignored, both of files and of pages
		got = strings.ReplaceAll(got, path, Root+"/assets/"+asset)
	}
	got = tagOfPage.ReplaceAllString(got, `data-tag="tag"`)
	if file != goldenFile("home_typical") { // one file has the common end of all pages
		got = sameAtEnd.ReplaceAllString(sameAtHead.ReplaceAllString(got, ""), "</body>")
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s%s", file, upper(diff), updates)
	}
}

// harmless checks a page for effects of malicious data: as text, and as a browser parses it.
func harmless(t *testing.T, name, page string) {
	t.Helper()
	for _, bad := range []string{"<script>", "<img", " style=", "javascript:", "\u202e", "\x00", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("%s has %q in it", name, bad)
		}
	}
	for n := range parsed(t, page).Descendants() {
		if slices.Contains([]string{"img", "iframe", "object", "embed", "style", "base"}, n.Data) && n.Type == html.ElementNode || n.Data == "script" && (n.FirstChild != nil || attribute(n, "src") == "") {
			t.Errorf("%s has a %s", name, n.Data)
		}
		for _, a := range n.Attr {
			leads := slices.Contains([]string{"href", "src", "action", "formaction"}, a.Key)
			of := func(prefix string) bool { return strings.HasPrefix(a.Val, prefix) }
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || leads && !of(Root) && !of("#") && !of("/.auth/login/") && !of("https://github.com/vibedata/roundhouse/") {
				t.Errorf("%s has the attribute %s=%q", name, a.Key, a.Val)
			}
		}
	}
}

// Each address of the console has a page here, and one with malicious data. Confirmation pages are alike, so one of
// adjacent ones suffices.
func TestEveryPageIsHeld(t *testing.T) {
	t.Parallel()
	held := map[string]string{} // the names of pages by the paths of their routes
	for _, pages := range areas() {
		for name, page := range pages {
			at, err := url.Parse(page.target)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range Routes() {
				if page.status == http.StatusOK && page.form == nil && samePath(r.Path, at.EscapedPath()) {
					held[r.Path] += " " + name
				}
			}
		}
	}
	for _, r := range Routes() {
		if r.Method != http.MethodGet || r.Path == orchestrationPath+"/history" { // a file
			continue
		}
		names := held[r.Path]
		if names == "" {
			t.Errorf("no page of %s is held", r.Path)
		}
		if over := path.Dir(r.Path); over != Root && !strings.HasPrefix(path.Base(r.Path), ":") {
			for other, of := range held {
				if path.Dir(other) == over {
					names += of
				}
			}
		}
		if !strings.Contains(names, "hostile") {
			t.Errorf("no page of %s with data that is meant to do harm is held, only%s", r.Path, names)
		}
	}
}

// samePath reports whether a path is one of a route.
func samePath(route, path string) bool {
	want, got := strings.Split(route, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(want, got string) bool { return want == got || strings.HasPrefix(want, ":") })
}

// Each page with a golden file is accessible in both themes and by keyboard. These, and each with malicious data, fit a
// small screen and keep to their policy. Pages are requested once, and opened as answered.
func TestBrowserPages(t *testing.T) {
	t.Parallel()
	var page atomic.Pointer[httptest.ResponseRecorder]
	files := newConsole(t, nothing(), access.Control{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, Root+"/assets/") {
			files.ServeHTTP(w, r)
			return
		}
		rec := page.Load()
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	b := browser.Open(t, server.URL)
	for _, pages := range areas() {
		for _, name := range slices.Sorted(maps.Keys(pages)) {
			golden := isGolden(goldenFile(name))
			if !golden && !strings.Contains(name, "hostile") {
				continue
			}
			page.Store(pages[name].ask(t))
			b.Open(Root + "/" + name)
			if golden {
				b.Shown(name, nil)
			} else {
				b.Fits(name)
			}
		}
	}
	b.Silent()
}
