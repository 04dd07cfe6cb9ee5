// Package console serves the web UI for operators at /api/console.
//
// Promises:
//   - It makes no access decisions. Each page calls the API, in process and in the name of the browser's user, so
//     permissions, tenants, redaction, limits, the audit log and idempotency are those of the API.
//   - No page ever contains a key, and no address contains one for longer than a single answer.
//   - The address has the position and the filters of a page. Pages work without scripts, and entirely by keyboard.
//   - Outside data is shown as text, cut to a bounded size, with numbers unchanged and invisible characters made
//     visible (Text).
//   - Only a POST from the console's own page makes a change, and repeats of one form are one change.
//
// A page is a view model (a struct with exactly the data of the page) and a template of the folder templates. testdata
// has a golden page of each template, and outlines of the same page with other data: empty, typical and hostile. It
// owns no storage keys.
package console
