// Package tracing exports OpenTelemetry traces of Roundhouse, with the names of the DurableTask tracing specification.
//
// Promises:
//
//   - A run is one trace, regardless of its duration, its processes and their crashes. Its spans are built from
//     committed rounds, with the times of the rounds, and their ids are digests of names. A process that exports a span
//     a second time exports the same span.
//   - A span is exported when its subject has ended. The process that ends an execution also exports all spans that it
//     did not export itself, so the spans of a process that died are not missing.
//   - A span's parent is never missing. Spans of a process that are exported at the end of its work (deliveries of
//     messages, requests, polls) have no children; later spans link to them.
//   - A replay makes no span, and a trace costs no storage request: its context travels in messages, rounds, signals
//     and events.
//   - Work never waits for the exporter: spans that do not fit the queue are dropped.
//
// A trace context is a W3C traceparent. A message without one starts a trace whose id is a digest of its correlation
// id, so all engines that work under one correlation id share it. The sampling decision is made then, once.
//
// The package owns no storage keys. It is off until Config has an endpoint for traces.
package tracing
