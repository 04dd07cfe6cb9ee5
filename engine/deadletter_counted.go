package engine

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/vibedata/roundhouse/internal/tenant"
	"github.com/vibedata/roundhouse/tables"
)

// samplesForEach is the number of dead letters to read for each group without a sample: enough that most groups find
// one.
const samplesForEach = 16

// countedGroups is Groups from the counts of causes. ok is false when the filter needs other columns, or some causes
// are missing.
func (d *DeadLetters) countedGroups(ctx context.Context, f DeadLetterFilter, q listQuery, l listing) (out DeadLetterGroups, ok bool, err error) {
	if f.InstanceID != "" || f.CorrelationID != "" || f.ErrorSignature != "" || f.Assignee != "" || f.Unassigned || !f.From.IsZero() || !f.To.IsZero() {
		return out, false, nil
	}
	counted := make([][]tables.Entity, len(q.engines))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelQueries)
	for i, engine := range q.engines {
		group.Go(func() (err error) {
			counted[i], err = d.countRows(groupCtx, engine)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, false, err
	}
	groups := map[string]*DeadLetterGroup{}
	for i, engine := range q.engines {
		for _, e := range counted[i] {
			causes, ok := causesOf(e)
			if !ok {
				return out, false, nil
			}
			for _, c := range causes {
				if l.tenant == "" || tenant.Fold(l.tenant) == c.Tenant {
					q.group(groups, engine, c)
				}
			}
		}
	}
	if err := d.sample(ctx, q, l, groups); err != nil {
		return out, false, err
	}
	out.Complete, out.Groups = true, bySize(groups)
	for _, g := range out.Groups {
		out.Examined += g.Count
	}
	return out, true, nil
}

// group adds the counts of a cause that the query selects to their group.
func (q listQuery) group(groups map[string]*DeadLetterGroup, engine string, c cause) {
	n := c.total()
	if q.status != "" {
		n = *c.of(DeadLetterStatus(q.status))
	}
	if n == 0 {
		return
	}
	g := groups[c.Signature]
	if g == nil {
		g = &DeadLetterGroup{ErrorSignature: c.Signature, FirstFailureAtUtc: c.First}
		groups[c.Signature] = g
	}
	g.Count += int(n)
	if c.First.Before(g.FirstFailureAtUtc) {
		g.FirstFailureAtUtc = c.First
	}
	if at, found := slices.BinarySearch(g.Engines, engine); !found {
		g.Engines = slices.Insert(g.Engines, at, engine)
	}
}

// sample sets the newest dead letter of each group. A group whose last one has gone since it was counted is left out.
func (d *DeadLetters) sample(ctx context.Context, q listQuery, l listing, groups map[string]*DeadLetterGroup) error {
	wanted := maps.Clone(groups)
	q.engines = enginesOf(groups)
	page := min(groupPage, max(DefaultLimit, samplesForEach*len(groups)))
	for read := 0; len(wanted) > 0 && read < MaxGrouped; page = groupPage {
		l.limit = page - 1 // a stream asks for one more
		rows, err := merge(ctx, q.streams(l, nil), page)
		if err == nil {
			err = takeSamples(rows, wanted)
		}
		if err != nil {
			return err
		}
		if len(rows) < page {
			break
		}
		l.after = &rows[page-1].at
		read += page
	}
	return d.sampleEach(ctx, q, l, groups, wanted)
}

// sampleEach searches for the missing samples one by one, behind the rows that were read already.
func (d *DeadLetters) sampleEach(ctx context.Context, q listQuery, l listing, groups, wanted map[string]*DeadLetterGroup) error {
	for signature, g := range wanted {
		one := l
		one.limit, one.where = 0, map[string]any{"ErrorSignature": signature}
		q.engines = g.Engines
		rows, err := merge(ctx, q.streams(one, nil), 1)
		if err == nil {
			err = takeSamples(rows, wanted)
		}
		if err != nil {
			return err
		}
		if wanted[signature] != nil {
			delete(groups, signature)
		}
	}
	return nil
}

// enginesOf returns the engines that have dead letters of some group.
func enginesOf(groups map[string]*DeadLetterGroup) (engines []string) {
	for _, g := range groups {
		engines = append(engines, g.Engines...)
	}
	return slices.Compact(slices.Sorted(slices.Values(engines)))
}

// takeSamples sets samples of groups, and removes these groups from wanted.
func takeSamples(rows []listedRow, wanted map[string]*DeadLetterGroup) error {
	for _, row := range rows {
		g := wanted[row.entity.String("ErrorSignature")]
		if g == nil {
			continue
		}
		letter, err := deadLetterOf(row.entity)
		if err != nil {
			return err
		}
		g.Sample, g.LastFailureAtUtc = letter, letter.LastFailureAtUtc
		delete(wanted, g.ErrorSignature)
	}
	return nil
}
