// Package alerts causes each alert of deploy/observability/prometheus/rules.yaml. The program runs over stores in
// memory; something breaks and is repaired. Its metrics are scraped each minute of virtual time, and promtool evaluates
// the rules over them. No alert fires before the failure, those of the cause fire while it lasts, and none fires after
// the repair. The package holds tests only.
package alerts
