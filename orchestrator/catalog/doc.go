// Package catalog lists orchestrations at a cost that does not grow with their number: it keeps an index of them, newest
// first, by orchestrator, by status, by tag, and by id.
//
// What it promises:
//   - A list shows every orchestration as its status row has it at that time. The index only says where to look: what it has
//     wrong is not shown, and a list takes it out on the way.
//   - It is no part of a round. What [Catalog.Note] hears is gathered for a moment and written behind, many orchestrations
//     in one transaction, so a list may miss what began or changed a moment ago.
//   - What a crash keeps from being written, [Catalog.Repair] finds: it compares all rows of the index with all status rows, a
//     slice at a time. It fills an index, too, that there was not before. [Catalog.RepairLag] says how far it is behind.
//
// A page costs a query a view (one, or one a status), and a read of one row for each orchestration that it looks at. What no
// view is made for, a correlation id or a custom status, is looked for among those that the rest of the filter selects.
//
// A pass of the repair costs, for 1,000 orchestrations, 63 transactions that mark their rows, a page for every 1,000 rows,
// a page of the orchestrations, and 4 for its place: about 75, and a read for each row that was written meanwhile. What is
// wrong costs besides: 16 transactions for the first of some neighbours that lacks a row, and 3 for each that does.
//
// It owns the table "orchestrationsList". In the partition "list", each orchestration has the rows i-{id}, a-{place},
// n-{orchestrator}-{place}, s-{status}-{place}, e-{orchestrator}-{status}-{place} and, with a tag, t-{tag}-{place}, where
// the place sorts by creation, newest first, and names are digests. The partition "repair" has one row: how far the repair
// is.
package catalog
