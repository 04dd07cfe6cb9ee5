// Package dashboards makes the Grafana dashboards in deploy/observability/grafana. The dashboards are committed as
// files, so using them does not require Go. TestGenerated compares the files with the output of this package and can
// rewrite them.
//
// The tests check every query with promtool, every metric and label against docs/observability.md, and every link
// against docs/recovery.md and the other dashboards. The package is a module of its own, so that its dependencies are
// not dependencies of Roundhouse's users.
package dashboards
