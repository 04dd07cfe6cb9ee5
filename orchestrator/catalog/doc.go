// Package catalog lists orchestrations at a cost that does not grow with their number: it keeps an index of them, newest
// first, by orchestrator, by status, by tag, by tenant, by correlation id, and by id.
//
// Promises:
//   - A list shows every orchestration as its status row has it at that time. The index only says where to look: a stale row of
//     the index is not shown, and the list deletes it.
//   - The index is not part of a round. [Catalog.Record] collects changes for a moment and then writes many
//     orchestrations in one transaction, so a list may miss the changes of the last moment.
//   - [Catalog.Repair] finds changes lost in a crash: it compares all rows of the index with all status rows, one
//     slice at a time, and fixes differences. It also fills a new index. [Catalog.RepairLag] returns how old an error
//     in the index can be.
//
// A page costs one query for each view (one view, or one for each status and orchestrator), and one read for each
// orchestration that it checks. Conditions without a view, such as a custom status, are checked on those
// orchestrations that the rest of the filter selects. The orchestrations of a tenant have all views but the one by id
// a second time, so that a list for a tenant costs the same as without other tenants; by id, the store filters the
// rows of others, a thousand in a query.
//
// For 1,000 orchestrations, a pass of the repair reads a page of them and 6 to 12 pages of rows, and makes 3 requests
// for the state of the pass. An orchestration that differs, or changed during the pass, costs all that again. In
// addition, the orchestrations in its bucket of ids (one of 4,096) are marked. That costs a transaction for 9 to 20
// of them, 3 for each that lacks a row, up to 20 for the first of several such neighbors, and a read for each row
// that was written meanwhile. If all differ, as in a new index, the marks of 1,000 orchestrations are 63
// transactions, or up to 125 if they have tenants and tags.
//
// The package owns the table "orchestrationsList". In the partition "list", each orchestration has the rows i-{id},
// a-{place}, n-{orchestrator}-{place}, s-{status}-{place}, e-{orchestrator}-{status}-{place} and, with a tag,
// t-{tag}-{place}, and with a correlation id, c-{correlation id}-{place}, where the place sorts by creation, newest
// first, and names are digests. For an orchestration of a tenant, the rows with a place, except c-, exist a second
// time behind o-{tenant}-. The partition "repair" has one row: the progress of the repair.
package catalog
