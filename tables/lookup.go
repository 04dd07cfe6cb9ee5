package tables

import "cmp"

// lookup is a Query or a Scan, as both stores carry it out: one of the two key parts is one key, the other a range.
type lookup struct {
	partition, row span
	where          map[string]any
	selected       []string
	limit          int // 0 is maxPage
	continuation   string
}

// span is the keys that a lookup wants of a key part: the one that it is, or else those with from <= key < to, where
// "" is open.
type span struct {
	one      bool
	is       string
	from, to string
}

func (q *Query) lookup() *lookup {
	return &lookup{
		partition: span{one: true, is: q.Partition},
		row:       span{from: q.From, to: q.To},
		where:     q.Where, selected: q.Select, limit: q.Limit, continuation: q.Continuation,
	}
}

func (s *Scan) lookup() *lookup {
	return &lookup{
		partition: span{from: s.FromPartition, to: s.ToPartition},
		row:       span{one: true, is: s.Row},
		where:     s.Where, selected: s.Select, limit: s.Limit, continuation: s.Continuation,
	}
}

// pageLimit is how many entities a page may have.
func (l *lookup) pageLimit() int { return cmp.Or(l.limit, maxPage) }
