package docs

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Every link inside the repository leads to an existing file, and to an existing heading if the link names one.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := map[string]page{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	checked := 0
	for _, p := range all {
		for _, link := range p.links {
			target, anchor, ours := resolve(t, p, link)
			if !ours {
				continue
			}
			checked++
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: the link to %s: %v", p.path, link, err)
			}
			if anchor != "" && !all[target].anchors[anchor] {
				t.Errorf("%s: the link to %s: %s has no such heading", p.path, link, target)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d links were found", checked)
	}
}

// Every document is reachable from the README by links.
func TestEveryDocumentIsReachable(t *testing.T) {
	t.Parallel()
	all := map[string]page{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	reached := map[string]bool{"README.md": true}
	for next := []string{"README.md"}; len(next) > 0; next = next[1:] {
		for _, link := range all[next[0]].links {
			target, _, ours := resolve(t, all[next[0]], link)
			if ours && !reached[target] {
				reached[target] = true
				next = append(next, target)
			}
		}
	}
	for name := range all {
		if !reached[name] {
			t.Errorf("no chain of links leads from README.md to %s", name)
		}
	}
}

// Anchors are those of GitHub.
func TestAnchors(t *testing.T) {
	t.Parallel()
	p := parse("x.md", []byte("# host.json\n\n## What `go test` does, and why\n\n## Ünï-code_ 2!\n\n# host.json\n"))
	for _, want := range []string{"hostjson", "what-go-test-does-and-why", "ünï-code_-2", "hostjson-1"} {
		if !p.anchors[want] {
			t.Errorf("no anchor %s in %v", want, p.anchors)
		}
	}
}

// resolve returns the file and the anchor of a link of a page; ours is false for an external link.
func resolve(t *testing.T, p page, link string) (target, anchor string, ours bool) {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Errorf("%s: the link %s: %v", p.path, link, err)
		return "", "", false
	}
	if u.Scheme != "" {
		if u.Scheme != "https" {
			t.Errorf("%s: the link %s is not https", p.path, link)
		}
		return "", "", false
	}
	if u.Path == "" {
		return p.path, u.Fragment, true
	}
	return strings.TrimSuffix(path.Join(path.Dir(p.path), u.Path), "/"), u.Fragment, true
}
