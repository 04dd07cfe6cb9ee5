package dashboards

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// tag is that of all dashboards, by which each has links to the others.
const tag = "roundhouse"

// board is a dashboard before it is JSON.
type board struct {
	uid, title, about string
	// variables are those that only this dashboard has.
	variables []cog.Builder[dashboard.VariableModel]
	rows      []row
}

// row is a heading with the panels below it. They are laid out in the order in which they come, each line as wide as the dashboard, 24.
type row struct {
	title  string
	panels []cog.Builder[dashboard.Panel]
}

// json is what Grafana reads.
func (b board) json() ([]byte, error) {
	// Encoders of the SDK escape what only HTML has to.
	legible := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
	//lint:ignore SA1019 the format that takes the place of this one is read by the newest versions of Grafana only
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

// inPlace has links where people look for them. The SDK puts them into a menu unless it is told where else, for which it has no word.
func inPlace(links []dashboard.DashboardLink) {
	for i := range links {
		links[i].Placement = nil
	}
}

// built is a panel that needs no more building.
type built dashboard.Panel

// Build implements cog.Builder.
func (b built) Build() (dashboard.Panel, error) { return dashboard.Panel(b), nil }

// choice is a variable whose values are those of a label.
func choice(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(source()).Query(dashboard.StringOrMap{String: new(query)}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
}

// choices is one of which several may be chosen; all are at first.
func choices(name, label, query string) *dashboard.QueryVariableBuilder {
	return choice(name, label, query).Multi(true).IncludeAll(true).AllValue(".*").Current(option("All", "$__all"))
}

// option is a value of a variable.
func option(text, value string) dashboard.VariableOption {
	return dashboard.VariableOption{Text: dashboard.StringOrArrayOfString{String: &text}, Value: dashboard.StringOrArrayOfString{String: &value}}
}

// mark shows in all graphs when something was.
func mark(name, color, title, query string) *dashboard.AnnotationQueryBuilder {
	return dashboard.NewAnnotationQueryBuilder().Name(name).Datasource(source()).Enable(true).IconColor(color).TitleFormat(title).
		Target(prometheus.NewDataqueryBuilder().Expr(query).Interval("60s").Range().RefId("Anno"))
}
