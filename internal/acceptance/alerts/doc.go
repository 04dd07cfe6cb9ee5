// Package alerts causes what each alert of deploy/observability/prometheus/rules.yaml is about: the program runs over stores in
// memory, something breaks, and is mended. Its metrics are scraped all the while, each minute of virtual time, and promtool says of
// what was scraped which alerts fire: none while all is well, those of the cause while it lasts, and none when it is mended.
// It holds tests only.
package alerts
