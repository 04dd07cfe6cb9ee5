// Package dashboards makes the dashboards for Grafana in deploy/observability/grafana, which are files so that nobody needs Go to use
// them. TestGenerated holds the files against this package and writes them anew.
//
// Its tests hold every query against promtool, the metrics that docs/observability.md has, and their labels; every link against
// docs/recovery.md and the other dashboards. It is a module of its own, so that what only makes and tests dashboards is no dependency
// of those who use Roundhouse.
package dashboards
