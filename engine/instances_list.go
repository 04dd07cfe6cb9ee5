package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/vibedata/roundhouse/tables"
)

// instanceStreams returns the streams of an engine's rows of the instance that the query names: one for each list, or
// one for all of them if they may fit a page.
func (q listQuery) instanceStreams(l listing, engine string) []*rowStream {
	id := q.equal["InstanceId"]
	var lanes []*rowStream
	for _, list := range q.lists() {
		lanes = append(lanes, l.indexStream(engine, instanceList(id, list)))
	}
	if len(lanes) == 1 || l.after != nil { // a second page means that one page is not enough
		return lanes
	}
	return []*rowStream{q.fewStream(l, engine, lanes)}
}

// fewStream reads all rows of an instance in one query, of any list, if they fit a page, as those of most instances
// do; otherwise it reads the lanes, one for each list.
func (q listQuery) fewStream(l listing, engine string, lanes []*rowStream) *rowStream {
	prefix := instancePrefix(q.equal["InstanceId"])
	all := tables.Query{Partition: tables.EscapeKey(engine), From: prefix, To: tables.PrefixEnd(prefix), Where: l.where, Limit: l.limit + 1}
	many := false
	return &rowStream{fetch: func(ctx context.Context) (listed []listedRow, more bool, err error) {
		if !many {
			page, err := l.store.Query(ctx, l.table, all)
			if err != nil || page.Next == "" {
				return q.within(l, engine, page.Entities), false, err
			}
			many = true
		}
		listed, err = merge(ctx, lanes, l.limit+1)
		return listed, len(listed) > l.limit, err
	}}
}

// within returns the selected index rows of an instance, newest first.
func (q listQuery) within(l listing, engine string, rows []tables.Entity) (listed []listedRow) {
	for _, list := range q.lists() {
		prefix := instanceList(q.equal["InstanceId"], list)
		from, to := l.bounds(engine, prefix)
		for _, e := range rows {
			if from <= e.Row && e.Row < to && l.sees(e) {
				listed = append(listed, listedRow{position{e.Row[len(prefix):], engine}, e})
			}
		}
	}
	slices.SortFunc(listed, func(a, b listedRow) int { return cmp.Compare(a.at.place, b.at.place) })
	return listed
}
