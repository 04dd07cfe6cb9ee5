package dashboards

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every panel has a description, a unit and a link to the instructions. It queries the selected data source and
// overlaps no other panel.
func TestPanels(t *testing.T) {
	t.Parallel()
	for name, d := range documents(t) {
		ids, titles := map[int]bool{}, map[string]bool{}
		for i, p := range d.Panels {
			at := name + ": " + p.Title
			if ids[p.ID] || p.ID == 0 {
				t.Errorf("%s: the id %d is there twice, or is none", at, p.ID)
			}
			ids[p.ID] = true
			if p.Title == "" || p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: no title, or a wrong place: %+v", at, p.GridPos)
			}
			for _, other := range d.Panels[:i] {
				if overlap(p.GridPos, other.GridPos) {
					t.Errorf("%s lies upon %s", at, other.Title)
				}
			}
			if p.Type == "row" {
				titles = map[string]bool{} // titles are unique within a row
				continue
			}
			if titles[p.Title] {
				t.Errorf("%s: the title is there twice in its row", at)
			}
			titles[p.Title] = true
			if !strings.Contains(p.Description, recovery+"#") || len(p.Description) < len(recovery)+40 {
				t.Errorf("%s: the description does not say what it is and what to do: %q", at, p.Description)
			}
			if p.FieldConfig.Defaults.Unit == "" {
				t.Errorf("%s has no unit", at)
			}
			if len(p.Targets) == 0 {
				t.Errorf("%s asks for nothing", at)
			}
			chosen := dataSource{"prometheus", "${datasource}"}
			for _, q := range p.Targets {
				if q.Datasource != chosen || p.Datasource != chosen {
					t.Errorf("%s asks %+v, %+v", at, p.Datasource, q.Datasource)
				}
			}
		}
		if len(d.Panels) < 15 {
			t.Errorf("%s: there are only %d panels", name, len(d.Panels))
		}
	}
}

func overlap(a, b gridPosition) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

// The data source and the job are variables. The default job is that of the alert rules.
func TestVariables(t *testing.T) {
	t.Parallel()
	for name, d := range documents(t) {
		var all []string
		for _, v := range d.Templating.List {
			all = append(all, v.Name)
			if v.Name == "job" && !strings.Contains(string(v.Current), `"value": "roundhouse"`) {
				t.Errorf("%s: the job is %s", name, v.Current)
			}
			if v.Name == "datasource" && (v.Type != "datasource" || v.Query != "prometheus") {
				t.Errorf("%s: the data source is a %s of the type %s", name, v.Type, v.Query)
			}
		}
		if len(all) < 2 || all[0] != "datasource" || all[1] != "job" {
			t.Errorf("%s has the variables %q", name, all)
		}
		for _, used := range regexp.MustCompile(`\$\{?([a-z]\w*)`).FindAllStringSubmatch(read(t, folder+"/"+name), -1) {
			if !slices.Contains(all, used[1]) {
				t.Errorf("%s uses the variable %s, which it does not have", name, used[1])
			}
		}
	}
	if !strings.Contains(read(t, "../prometheus/rules.yaml"), `up{job="roundhouse"}`) {
		t.Error("the alert rules are for another job")
	}
}

// Links lead to existing headings of docs/recovery.md, and to existing dashboards and variables.
func TestLinks(t *testing.T) {
	t.Parallel()
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(read(t, "../../../docs/recovery.md"), -1) {
		kept := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(kept, " ", "-")] = true
	}
	all, within := documents(t), 0
	for name, d := range all {
		found := regexp.MustCompile(regexp.QuoteMeta(recovery)+`#([^)"\s]*)`).FindAllStringSubmatch(read(t, folder+"/"+name), -1)
		if len(found) < 15 {
			t.Errorf("%s has only %d links to what to do", name, len(found))
		}
		for _, m := range found {
			if !anchors[m[1]] {
				t.Errorf("%s: docs/recovery.md has no heading for #%s", name, m[1])
			}
		}
		for _, l := range d.allLinks(t) {
			path, query, _ := strings.Cut(l.URL, "?")
			uid, ours := strings.CutPrefix(path, "/d/")
			if !ours {
				if l.URL != "" && !strings.HasPrefix(l.URL, recovery+"#") {
					t.Errorf("%s leads to %s", name, l.URL)
				}
				continue
			}
			within++
			target, ok := all[uid+".json"]
			if !ok {
				t.Errorf("%s leads to %s: there is no such dashboard", name, uid)
			}
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Errorf("%s: %s: %v", name, l.URL, err)
			}
			for key := range values {
				v, is := strings.CutPrefix(key, "var-")
				if is && !slices.ContainsFunc(target.Templating.List, func(have variable) bool { return have.Name == v }) {
					t.Errorf("%s: %s has no variable %s", name, uid, v)
				}
			}
		}
	}
	if within < 10 {
		t.Errorf("only %d links lead from a dashboard to another", within)
	}
}
