package dashboards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Units, by their names in Grafana.
const (
	count      = "short"
	seconds    = "s"
	share      = "percentunit"
	eachMinute = "cpm"
	eachSecond = "ops"
	requests   = "reqps"
	size       = "bytes"
	cores      = "suffix: cores"
)

// Colors, by their names in Grafana.
const (
	green  = "green"
	blue   = "blue"
	grey   = "#808080"
	yellow = "yellow"
	orange = "orange"
	red    = "red"
	purple = "purple"
)

// recovery is what to do, for people.
const recovery = "https://github.com/vibedata/roundhouse/blob/main/docs/recovery.md"

// about is the description of a panel: what it shows, and the headings of docs/recovery.md that say what to do.
func about(text string, headings ...string) string {
	var links []string
	for _, h := range headings {
		links = append(links, "["+h+"]("+recovery+"#"+anchor(h)+")")
	}
	return text + "\n\nWhat to do: " + strings.Join(links, ", ")
}

// anchor is that of a heading of words.
func anchor(heading string) string { return strings.ReplaceAll(strings.ToLower(heading), " ", "-") }

// source is the data source that was chosen.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}

// colors says what the color of a value is by.
func colors(by dashboard.FieldColorModeId) *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(by)
}

// limit is a value from which on a number has a color.
type limit struct {
	from  float64
	color string
}

// thresholds are a color and those that take its place from some values on.
func thresholds(base string, limits ...limit) *dashboard.ThresholdsConfigBuilder {
	steps := []dashboard.Threshold{{Color: base}}
	for _, l := range limits {
		steps = append(steps, dashboard.Threshold{Value: new(l.from), Color: l.color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// number shows one value as it is now. Without limits it has no color, because no value of it is bad.
func number(title, description, unit, query string, limits ...limit) *stat.PanelBuilder {
	base, mode := green, common.BigValueColorModeBackground
	if len(limits) == 0 {
		base, mode = "text", common.BigValueColorModeNone
	}
	p := stat.NewPanelBuilder().Title(title).Description(description).Unit(unit).Datasource(source()).Span(4).Height(4).
		ColorScheme(colors(dashboard.FieldColorModeIdThresholds)).Thresholds(thresholds(base, limits...)).ColorMode(mode).Orientation(common.VizOrientationAuto).GraphMode(common.BigValueGraphModeNone).TextMode(common.BigValueTextModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		WithTarget(instant(query))
	if unit == count {
		p.Decimals(0) // an increase is worked out from what was scraped, and need not be whole
	}
	return p
}

// needed is a number of what there has to be: none is bad.
func needed(p *stat.PanelBuilder) *stat.PanelBuilder {
	return p.Thresholds(thresholds(red, limit{1, green})).ColorMode(common.BigValueColorModeBackground)
}

// instant asks for values of now: what nobody shows any more is no data, and not the last value that there was.
func instant(query string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source()).Expr(query).Instant().RefId("A")
}

// line is a query of a graph, and how its series are called.
type line struct {
	query, legend string
	// exemplars says that traces of single values are shown as well.
	exemplars bool
}

// graph shows values over the chosen time.
func graph(title, description, unit string, lines ...line) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().Title(title).Description(description).Unit(unit).Datasource(source()).Span(8).Height(8).
		ColorScheme(colors(dashboard.FieldColorModeIdPaletteClassic)).AxisSoftMin(0).LineWidth(1).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).
			Placement(common.LegendPlacementBottom).Calcs([]string{"lastNotNull", "max"}))
	for i, l := range lines {
		q := prometheus.NewDataqueryBuilder().Datasource(source()).Expr(l.query).LegendFormat(l.legend).Range().RefId(refID(i))
		if l.exemplars {
			q.Exemplar(true)
		}
		p.WithTarget(q)
	}
	return p
}

// stacked makes the series of a graph add up.
func stacked(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).FillOpacity(40)
}

// paint is the color of the series with a name.
type paint struct{ name, color string }

// painted gives series the colors of what they mean.
func painted(p *timeseries.PanelBuilder, paints ...paint) *timeseries.PanelBuilder {
	for _, c := range paints {
		p.OverrideByName(c.name, []dashboard.DynamicConfigValue{
			{Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": c.color}},
		})
	}
	return p
}

// refID names a query of a panel: A, B, C.
func refID(i int) string { return string(rune('A' + i)) }

// column is a query of a table, whose values it shows.
type column struct {
	title, unit, query string
	limits             []limit
}

// rows shows values of now, with a row for each combination of labels. shown are the titles of labels, hidden are labels without a column.
func rows(title, description string, shown map[string]string, hidden []string, columns ...column) *table.PanelBuilder {
	p := table.NewPanelBuilder().Title(title).Description(description).Unit(count).Datasource(source()).Span(24).Height(8).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{}))
	exclude, rename := map[string]bool{"Time": true}, map[string]string{}
	for _, label := range hidden {
		exclude[label] = true
	}
	for label, name := range shown {
		rename[label] = name
	}
	for i, c := range columns {
		p.WithTarget(instant(c.query).Format(prometheus.PromQueryFormatTable).RefId(refID(i)))
		field := "Value #" + refID(i)
		if len(columns) == 1 {
			field = "Value"
		}
		rename[field] = c.title
		properties := []dashboard.DynamicConfigValue{{Id: "unit", Value: c.unit}}
		if c.unit == count {
			properties = append(properties, dashboard.DynamicConfigValue{Id: "decimals", Value: 0})
		}
		if len(c.limits) > 0 {
			properties = append(properties, colored(c.limits)...)
		}
		p.OverrideByName(c.title, properties)
	}
	return p.
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": exclude, "renameByName": rename}})
}

// colored gives the text of a column the color of its value.
func colored(limits []limit) []dashboard.DynamicConfigValue {
	steps := []map[string]any{{"color": "text", "value": nil}}
	for _, l := range limits {
		steps = append(steps, map[string]any{"color": l.color, "value": l.from})
	}
	return []dashboard.DynamicConfigValue{
		{Id: "thresholds", Value: map[string]any{"mode": "absolute", "steps": steps}},
		{Id: "custom.cellOptions", Value: map[string]string{"type": "color-text"}},
	}
}

// to leads to another dashboard, with the same choices.
func to(uid, title string) cog.Builder[dashboard.DashboardLink] {
	return dashboard.NewDashboardLinkBuilder(title).Type(dashboard.DashboardLinkTypeLink).Url("/d/" + uid + "?${__url_time_range}&${__all_variables}")
}

// links is for what takes several of them.
func links(all ...cog.Builder[dashboard.DashboardLink]) []cog.Builder[dashboard.DashboardLink] {
	return all
}
