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

// Names of units in Grafana.
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

// Names of colors in Grafana.
const (
	green  = "green"
	blue   = "blue"
	grey   = "#808080"
	yellow = "yellow"
	orange = "orange"
	red    = "red"
	purple = "purple"
)

// recovery is the page with the instructions for operators.
const recovery = "https://github.com/vibedata/roundhouse/blob/main/docs/recovery.md"

// about returns the description of a panel: its content, and the headings of docs/recovery.md with the instructions.
func about(text string, headings ...string) string {
	var links []string
	for _, h := range headings {
		links = append(links, "["+h+"]("+recovery+"#"+anchor(h)+")")
	}
	return text + "\n\nWhat to do: " + strings.Join(links, ", ")
}

// anchor returns the anchor of a heading that consists of words.
func anchor(heading string) string { return strings.ReplaceAll(strings.ToLower(heading), " ", "-") }

// source returns the selected data source.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}

// colors returns how a value gets its color.
func colors(by dashboard.FieldColorModeId) *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(by)
}

// limit is the value from which a number has a color.
type limit struct {
	from  float64
	color string
}

// thresholds returns a base color and the colors that replace it from the given values on.
func thresholds(base string, limits ...limit) *dashboard.ThresholdsConfigBuilder {
	steps := []dashboard.Threshold{{Color: base}}
	for _, l := range limits {
		steps = append(steps, dashboard.Threshold{Value: new(l.from), Color: l.color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// number returns a panel with one current value. Without limits it has no color, because no value of it is bad.
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
		p.Decimals(0) // an increase is extrapolated from samples and is not always an integer
	}
	return p
}

// needed returns a number panel that marks a missing value as bad.
func needed(p *stat.PanelBuilder) *stat.PanelBuilder {
	return p.Thresholds(thresholds(red, limit{1, green})).ColorMode(common.BigValueColorModeBackground)
}

// instant returns a query for current values: a series that is no longer exported shows as no data, not as its last
// value.
func instant(query string) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source()).Expr(query).Instant().RefId("A")
}

// line is a query of a graph with the format of the names of its series.
type line struct {
	query, legend string
	// exemplars also shows the traces of single values.
	exemplars bool
}

// graph returns a panel with values over the selected time.
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

// stacked stacks the series of a graph.
func stacked(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).FillOpacity(40)
}

// paint is the color of the series with a name.
type paint struct{ name, color string }

// painted gives series fixed colors by name.
func painted(p *timeseries.PanelBuilder, paints ...paint) *timeseries.PanelBuilder {
	for _, c := range paints {
		p.OverrideByName(c.name, []dashboard.DynamicConfigValue{
			{Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": c.color}},
		})
	}
	return p
}

// refID returns the name of a query of a panel: A, B, C.
func refID(i int) string { return string(rune('A' + i)) }

// column is a query of a table and the column of its values.
type column struct {
	title, unit, query string
	limits             []limit
}

// rows returns a table of current values, with a row for each combination of labels. shown are the titles of labels;
// hidden are labels without a column.
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

// colored colors the text of a column by its value.
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

// to returns a link to another dashboard that keeps the selected time and variables.
func to(uid, title string) cog.Builder[dashboard.DashboardLink] {
	return dashboard.NewDashboardLinkBuilder(title).Type(dashboard.DashboardLinkTypeLink).Url("/d/" + uid + "?${__url_time_range}&${__all_variables}")
}

// links returns its arguments, for builder methods that take a slice.
func links(all ...cog.Builder[dashboard.DashboardLink]) []cog.Builder[dashboard.DashboardLink] {
	return all
}
