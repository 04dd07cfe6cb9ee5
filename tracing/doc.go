// Package tracing makes OpenTelemetry traces of what Roundhouse does, with the names of the DurableTask tracing specification.
//
// What is promised:
//
//   - A run is one trace, however long it lasts, in however many processes, and through whatever crashes: its spans are made of
//     what rounds hold, with times of the rounds, and with ids that are digests of what they stand for. Whoever tells a span again
//     tells the same span.
//   - Spans appear when what they stand for has ended; at the end of an execution, whoever ends it tells all that it did not tell
//     itself, so that nothing is missing which a process that died had in hand.
//   - A span has no parent that may be missing. Spans of a process that are told when it is done (deliveries of messages, requests,
//     polls) have no children; what follows from them names them in links.
//   - No replay makes a span, and a trace costs no storage request: its context travels in messages, rounds, signals and events.
//   - Work goes on when nobody takes the spans: what does not fit the queue is dropped.
//
// A trace context is a W3C traceparent. A message that has none begins a trace whose id is a digest of its correlation id, so
// all engines that work under one correlation id share it. Whether it is sampled is decided then, and once.
//
// The package owns no storage keys. It is off until Config names where to send traces.
package tracing
