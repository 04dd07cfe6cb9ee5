package tables

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// Query reads one page.
func (m *Memory) Query(ctx context.Context, table string, q Query) (Page, error) {
	page, err := m.list(ctx, table, q.Lookup())
	if err != nil {
		return Page{}, fmt.Errorf("query %s %s: %w", table, clip(q.Partition), err)
	}
	return page, nil
}

// Scan reads one page over many partitions.
func (m *Memory) Scan(ctx context.Context, table string, s Scan) (Page, error) {
	page, err := m.list(ctx, table, s.Lookup())
	if err != nil {
		return Page{}, fmt.Errorf("scan %s for %s: %w", table, clip(s.Row), err)
	}
	return page, nil
}

func (m *Memory) list(ctx context.Context, table string, l *Lookup) (Page, error) {
	if err := cmp.Or(ctx.Err(), CheckTable(table), l.Check()); err != nil {
		return Page{}, err
	}
	t, err := m.table(table)
	if err != nil {
		return Page{}, err
	}
	begin, err := l.resume()
	if err != nil {
		return Page{}, err
	}
	reader := pageReader{Lookup: l}
	for _, p := range t.partitionsIn(l.Partition, begin.Partition) {
		from := l.Row.From
		if p.key == begin.Partition {
			from = laterKey(from, begin.Row)
		}
		if !reader.read(p, from) {
			break
		}
	}
	return reader.page, nil
}

// partitionsIn returns the partitions of a span that are not below begin, in order. The caller must not change the
// result.
func (t *memoryTable) partitionsIn(s Span, begin string) []*memoryPartition {
	if s.One {
		if p := t.partition(s.Is); p != nil {
			return []*memoryPartition{p}
		}
		return nil
	}
	all := t.inOrder()
	first := findPartition(all, laterKey(s.From, begin))
	end := len(all)
	if s.To != "" {
		end = findPartition(all, s.To)
	}
	return all[first:max(first, end)]
}

// findPartition returns the index of the first partition that is not below key.
func findPartition(all []*memoryPartition, key string) int {
	i, _ := slices.BinarySearchFunc(all, key, func(p *memoryPartition, key string) int { return CompareKeys(p.key, key) })
	return i
}

// inOrder sorts the partitions on demand, so that the more frequent writes do not pay for scans.
func (t *memoryTable) inOrder() []*memoryPartition {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ordered == nil {
		t.ordered = slices.SortedFunc(maps.Values(t.partitions), func(a, b *memoryPartition) int { return CompareKeys(a.key, b.key) })
	}
	return t.ordered
}

// pageReader fills one page.
type pageReader struct {
	*Lookup
	page     Page
	examined int
}

// read adds the rows of one partition that are not below from. It returns false when the page is full.
func (r *pageReader) read(p *memoryPartition, from string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for row := range p.rows.from(from) {
		if r.Row.To != "" && CompareKeys(row.key, r.Row.To) >= 0 {
			return true
		}
		if len(r.page.Entities) == r.Limit || r.examined == maxPage {
			r.page.Next = r.Next(p.key, row.key)
			return false
		}
		// Skipped rows of other keys count, as in the service.
		r.examined++
		if (!r.Row.One || row.key == r.Row.Is) && row.matches(r.Where) && row.notBefore(r.NotBefore) {
			r.page.Entities = append(r.page.Entities, row.entity(p.key, r.Select))
		}
	}
	return true
}
