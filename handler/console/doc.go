// Package console is what people use in a browser: pages at /api/console that show what needs somebody, and let him do
// something about it.
//
// What it promises:
//   - It decides nothing about access. Each page asks the API, in process and in the name of whoever sent the browser's
//     request, so permissions, tenants, redaction, limits, the audit log and idempotency are those of the API, and hold where
//     they are decided already.
//   - No key is ever in a page, and none in an address for longer than it takes to answer once.
//   - Where one is and what one has filtered is in the address. Pages work without scripts, and everything by keyboard.
//   - What comes from outside is shown as text, cut to a bounded size, numbers as they came, and with what cannot be seen made
//     visible (Text).
//   - A change is made by a POST of a page of its own only, and repeats of one form are one change.
//
// A page is a view model (a struct with what the page shows, and nothing else) and a template of the folder templates. testdata has a golden
// page of each template, and outlines of the same page with other data: empty, typical and hostile. It owns no storage keys.
package console
