package dashboards

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// tag is the tag of all dashboards. Grafana links dashboards with the same tag to each other.
const tag = "roundhouse"

// board is a dashboard before its conversion to JSON.
type board struct {
	uid, title, about string
	// variables are the variables that only this dashboard has.
	variables []cog.Builder[dashboard.VariableModel]
	rows      []row
}

// row is a heading with the panels below it. The panels are laid out in their order; each line is as wide as the
// dashboard, 24 units.
type row struct {
	title  string
	panels []cog.Builder[dashboard.Panel]
}

// json returns the JSON that Grafana reads.
func (b board) json() ([]byte, error) {
	// The SDK's encoders escape characters that need escaping only in HTML.
	legible := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
	//lint:ignore SA1019 only the newest versions of Grafana read the format that replaces this one
	d := dashboard.NewDashboardBuilder(b.title).Uid(b.uid).Description(b.about).Tags([]string{tag}).
		Time("now-6h", "now").Refresh("1m").Timezone("browser").Editable().Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(choice("job", "Job", "label_values(roundhouse_build_info, job)").Current(option("roundhouse", "roundhouse"))).
		Link(dashboard.NewDashboardLinkBuilder("Roundhouse").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{tag}).IncludeVars(true).KeepTime(true)).
		Link(dashboard.NewDashboardLinkBuilder("What to do").Type(dashboard.DashboardLinkTypeLink).Icon("doc").TargetBlank(true).
			Url(recovery + "#when-an-alert-fires")).
		Annotation(mark("Critical alerts", red, "{{alertname}}",
			ours("ALERTS", `alertname=~"Roundhouse.+"`, `alertstate="firing"`, `severity="critical"`))).
		Annotation(mark("Versions", blue, "Version {{version}} begins",
			aggregated("count", "version", ours("roundhouse_build_info"))+" unless "+
				aggregated("count", "version", "last_over_time("+ours("roundhouse_build_info")+"[1h] offset 10m)")))
	for _, v := range b.variables {
		d.WithVariable(v)
	}
	id := uint32(0)
	for _, r := range b.rows {
		id++
		d.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		for _, builder := range r.panels {
			p, err := builder.Build()
			if err != nil {
				return nil, fmt.Errorf("a panel of %q: %w", r.title, err)
			}
			id++
			p.Id = new(id)
			inPlace(p.Links)
			inPlace(p.FieldConfig.Defaults.Links)
			d.WithPanel(built(p))
		}
	}
	whole, err := d.Build()
	if err != nil {
		return nil, err
	}
	inPlace(whole.Links)
	for i := range whole.Annotations.List {
		whole.Annotations.List[i].Placement = nil
	}
	text, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		return nil, err
	}
	return []byte(legible.Replace(string(text)) + "\n"), nil
}

// inPlace clears the placement of links, so that Grafana shows them at its default place. The SDK puts links into a
// menu, and its builder has no value for the default place.
func inPlace(links []dashboard.DashboardLink) {
	for i := range links {
		links[i].Placement = nil
	}
}

// built is a panel that is already built.
type built dashboard.Panel

// Build implements cog.Builder.
func (b built) Build() (dashboard.Panel, error) { return dashboard.Panel(b), nil }

// choice returns a variable whose values are those of a label.
func choice(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(source()).Query(dashboard.StringOrMap{String: new(query)}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
}

// choices returns such a variable with multiple selection; all values are selected at first.
func choices(name, label, query string) *dashboard.QueryVariableBuilder {
	return choice(name, label, query).Multi(true).IncludeAll(true).AllValue(".*").Current(option("All", "$__all"))
}

// option returns a value of a variable.
func option(text, value string) dashboard.VariableOption {
	return dashboard.VariableOption{Text: dashboard.StringOrArrayOfString{String: &text}, Value: dashboard.StringOrArrayOfString{String: &value}}
}

// mark returns an annotation that marks the times of events in all graphs.
func mark(name, color, title, query string) *dashboard.AnnotationQueryBuilder {
	return dashboard.NewAnnotationQueryBuilder().Name(name).Datasource(source()).Enable(true).IconColor(color).TitleFormat(title).
		Target(prometheus.NewDataqueryBuilder().Expr(query).Interval("60s").Range().RefId("Anno"))
}
