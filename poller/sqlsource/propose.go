package sqlsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Question asks for the definition of a table. Dialect, DSN and Table are required.
type Question struct {
	Dialect, DSN, Table string
	// SourceID, Cursor and Keys are used if set; otherwise they are determined.
	SourceID, Cursor string
	Keys             []string
	// Timeout bounds each statement; 0 means 30 s.
	Timeout time.Duration
}

// Proposal is a definition for a table.
type Proposal struct {
	Config Config `json:"source"`
	// Reasons explain the definition, a sentence each; Advice is that of Check.
	Reasons []string `json:"reasons"`
	Advice  []string `json:"advice"`
	// Missing are the missing parts of the table. When Ready is false, the poller cannot run without the first of them.
	Missing []Remedy `json:"missing"`
	Ready   bool     `json:"ready"`
	// Problem is the error of Check, "" for none.
	Problem string `json:"problem,omitempty"`
}

// candidate is a possible cursor column. The lowest rank is the best.
type candidate struct {
	column   column
	fact     fact
	bound    string
	rank     int
	followed bool // updates move it
	why      string
}

// Propose reads a database's description of a table, and proposes a definition: the best cursor that Check accepts, its
// bound and the keys. It reads the catalog and the rows that Check reads, and changes nothing. It judges triggers by
// their texts. For SQL Server it follows the documentation and is unproven.
func Propose(ctx context.Context, q Question) (Proposal, error) {
	s, err := openFor(q)
	if err != nil {
		return Proposal{}, err
	}
	p, err := s.propose(ctx, q)
	return p, errors.Join(s.fail("propose a definition for", err), s.Close())
}

// openFor opens a source without a cursor and keys.
func openFor(q Question) (*Source, error) {
	c := Config{Dialect: q.Dialect, DSN: q.DSN, Table: q.Table, SourceID: cmp.Or(q.SourceID, "new"), Cursor: cmp.Or(q.Cursor, "cursor"), Keys: []string{"key"}, Timeout: q.Timeout}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return open(c)
}

func (s *Source) propose(ctx context.Context, q Question) (p Proposal, err error) {
	reading, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	sh, err := s.columns(reading)
	if err != nil {
		return p, err
	}
	known, err := s.dialect.catalog(reading, s)
	if err != nil {
		return p, err
	}
	p.Config = Config{Dialect: q.Dialect, SourceID: cmp.Or(q.SourceID, known.database), Table: q.Table, Keys: q.Keys}
	if len(q.Keys) == 0 {
		var index string
		if p.Config.Keys, index = known.keys(); len(p.Config.Keys) == 0 {
			return p, fmt.Errorf("%w: the table has no primary key and no unique index over columns that are NOT NULL: make one, or say which columns name a row", ErrNotUnique)
		}
		p.reason("keys: %s, which the index %s keeps unique", strings.Join(p.Config.Keys, ", "), index)
	}
	if err := s.softDelete(reading, &p, sh); err != nil {
		return p, err
	}
	all, err := s.candidates(q, sh, known, &p)
	if err != nil {
		return p, err
	}
	chosen, err := s.choose(ctx, q, &p, all)
	if err != nil {
		return p, err
	}
	s.remedy(&p, chosen, known)
	if q.Dialect == SQLServer {
		p.reason("none of this was run against a SQL Server: it is written to the documentation")
	}
	return p, nil
}

func (p *Proposal) reason(format string, args ...any) {
	p.Reasons = append(p.Reasons, fmt.Sprintf(format, args...))
}

var deletedName = regexp.MustCompile(`(?i)^(is_?)?deleted(_?(at|on|utc|time))*$`)

// candidates returns the possible cursor columns, the best first.
func (s *Source) candidates(q Question, sh *shape, known catalog, p *Proposal) (all []candidate, err error) {
	for _, c := range sh.columns {
		if q.Cursor != "" && !strings.EqualFold(q.Cursor, c.name) {
			continue
		}
		f, _ := known.fact(c.name)
		found, ok := s.candidate(c, f)
		switch {
		case ok:
			all = append(all, found)
		case q.Cursor != "":
			bound := map[class]string{classXID: BoundXID, classRowVersion: BoundRowVersion}[c.class]
			all = append(all, candidate{column: c, fact: f, bound: cmp.Or(bound, BoundSettle), followed: f.updated != "", why: "it was asked for"})
		case slices.Contains([]class{classTime, classLocal}, c.class):
			p.reason("%s is not the cursor: no default and no trigger of the database sets it to the time of its transaction, as far as is known", c.name)
		}
	}
	if q.Cursor != "" && len(all) == 0 {
		_, err = sh.find(q.Cursor)
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.rank - b.rank })
	return all, nil
}

// candidate reports whether a column can be the cursor, and its rank: a column that updates move comes before one that
// only inserts set.
func (s *Source) candidate(c column, f fact) (candidate, bool) {
	k := candidate{column: c, fact: f, bound: BoundSettle, followed: f.updated != ""}
	isTime := c.class == classTime || c.class == classLocal && !strings.EqualFold(c.typ, "DATE")
	if s.config.Dialect == SQLite {
		isTime = c.class == classText && slices.Contains([]string{"DATETIME", "TIMESTAMP"}, strings.ToUpper(c.typ))
	}
	later := 0
	if !k.followed {
		later = 10
	}
	switch {
	case c.class == classXID:
		k.bound, k.rank, k.why = BoundXID, later, "it is an xid8, and rows come when all transactions up to theirs have ended"
	case c.class == classRowVersion:
		k.bound, k.rank, k.followed, k.why = BoundRowVersion, 0, true, "it is a rowversion, which the server sets at each write"
	case isTime && (k.followed || clock.MatchString(f.initial)):
		k.rank, k.why = 3+later, "the database sets it to the time of the transaction or statement"
		if c.class != classTime && s.config.Dialect != SQLite {
			k.rank, k.why = 4+later, k.why+"; it has no zone, so cursorZone has to be the one of the sessions that write, which is UTC here"
		}
	case c.class == classInteger && s.config.Dialect == SQLite && (k.followed || f.numbered):
		k.bound, k.rank, k.why = BoundSingleWriter, 2+later, "it is a whole number that grows, and SQLite lets one transaction write at a time"
		if f.numbered && f.extra == "" {
			k.rank++
		}
	case c.class == classInteger && f.numbered:
		k.rank, k.why = 5+later, "the database numbers rows by it, one by one"
	default:
		return candidate{}, false
	}
	return k, true
}

// choose returns the first candidate that Check accepts; when it refuses all, the first. Without candidates, it is the
// column that a remedy adds.
func (s *Source) choose(ctx context.Context, q Question, p *Proposal, all []candidate) (candidate, error) {
	if len(all) == 0 {
		r := s.dialect.remedies
		k := candidate{column: column{name: r.change}, bound: r.changeBound, followed: true}
		p.Config.Cursor, p.Config.Bound = r.change, r.changeBound
		p.reason("cursor: no column of the table can serve, so one has to be added, which each write sets")
		return k, nil
	}
	var refused error
	for _, k := range all {
		c := p.Config
		c.Cursor, c.Bound, c.DSN, c.Timeout = k.column.name, k.bound, q.DSN, q.Timeout
		advice, err := checked(ctx, c)
		if err == nil {
			p.Ready = true
			p.take(k, advice)
			return k, nil
		}
		if errors.Is(err, ErrConnection) || ctx.Err() != nil {
			return k, err
		}
		if refused == nil {
			refused = err
		}
		p.reason("%s could be the cursor, but: %s", k.column.name, err)
	}
	p.Problem = refused.Error()
	p.take(all[0], nil)
	return all[0], nil
}

// checked returns the result of Check for a definition.
func checked(ctx context.Context, c Config) ([]string, error) {
	s, err := Open(c)
	if err != nil {
		return nil, err
	}
	advice, err := s.Check(ctx)
	return advice, errors.Join(err, s.Close())
}

func (p *Proposal) take(k candidate, advice []string) {
	p.Config.Cursor, p.Config.Bound, p.Advice = k.column.name, k.bound, advice
	p.reason("cursor: %s, because %s", k.column.name, k.why)
	p.reason("bound: %s", k.bound)
	if k.fact.updated != "" {
		p.reason("updates are seen: %s sets %s", k.fact.updated, k.column.name)
	}
}

// remedy collects the missing parts of the table for a cursor.
func (s *Source) remedy(p *Proposal, k candidate, known catalog) {
	r := s.dialect.remedies
	table := tableParts(p.Config.Table)
	fill := parts{table: s.regclass(), name: table[len(table)-1], column: k.column.name, keys: p.Config.Keys}
	add := func(why, text string) { p.Missing = append(p.Missing, Remedy{why, s.fill(text, fill)}) }
	exists := k.fact.name != ""
	follow := ""
	if exists && !k.followed && r.follow != nil && !k.fact.numbered {
		follow = r.follow(k.fact, k.column)
	}
	switch {
	case !exists:
		add("a cursor: a column that each write sets", r.add)
	case follow != "":
		add("without it updates are not seen, as far as is known: nothing sets "+k.column.name+" at each update", follow)
	case !k.followed:
		better := fill
		better.name += "_" + r.change
		better.column, better.columns = r.change, append([]string{r.change}, p.Config.Keys...)
		p.Missing = append(p.Missing, Remedy{"updates are not seen, for they do not move " + k.column.name +
			". To see them, add a column that each write sets, and make it the cursor with the bound " + r.changeBound, s.fill(r.add, fill.with(r.change)) + "\n" + s.fill(r.index, better)})
	}
	if exists && k.fact.nullable && r.notNull != nil {
		add("rows without "+k.column.name+" are not read: give them a value, then", r.notNull(s.regclass(), s.dialect.quote(k.column.name), k.fact))
	}
	fill.columns = []string{k.column.name}
	for _, key := range p.Config.Keys {
		if !strings.EqualFold(key, k.column.name) && k.column.class != classRowVersion {
			fill.columns = append(fill.columns, key)
		}
	}
	if !slices.ContainsFunc(known.indexes, func(i index) bool { return i.serves(fill.columns, s.appended(known)) }) {
		fill.name += "_" + k.column.name
		add("without an index each fetch reads or sorts the whole table", r.index)
	}
}

// appended returns the columns of the primary key where the database appends them to each index.
func (s *Source) appended(known catalog) []string {
	keys, _ := known.keys()
	if s.config.Dialect == MySQL {
		return keys
	}
	if f, ok := known.fact(strings.Join(keys, "")); s.config.Dialect == SQLite && ok && f.numbered {
		return keys
	}
	return nil
}
