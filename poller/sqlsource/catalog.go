package sqlsource

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
)

// catalog is a database's description of a table.
type catalog struct {
	// database is its name.
	database string
	columns  []fact
	// indexes are those of whole rows, primary key first. Their columns are in order; an expression is "".
	indexes []index
}

// fact is the catalog's description of a column.
type fact struct {
	// name and typ are as declared, initial is the default, extra is MySQL's additional text.
	name, typ, initial, extra string
	nullable                  bool
	// numbered means that the database numbers rows in it.
	numbered bool
	// updated is the mechanism that sets it at each update, "" for none known.
	updated string
}

type index struct {
	name    string
	columns []string
	unique  bool
}

// trigger is a trigger that runs at each update of a row.
type trigger struct{ name, body string }

// clock matches a default or a trigger that reads the time.
var clock = regexp.MustCompile(`(?i)\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|localtimestamp|current_timestamp|strftime|datetime|getdate|getutcdate|sysdatetime|sysutcdatetime|sysdatetimeoffset|utc_timestamp|sysdate)\b`)

// anything matches every source of a number.
var anything = regexp.MustCompile("")

// transactionID matches a default or a trigger that reads the number of the transaction.
var transactionID = regexp.MustCompile(`(?i)\b(pg_current_xact_id|txid_current)\b`)

// sets finds the trigger whose text assigns a value to a column, and a time or the transaction to a column of that
// type. before is the text before the name in an assignment. It only matches text, and so may be wrong: callers report
// the name of the trigger.
func sets(triggers []trigger, before string, f fact) trigger {
	from := anything
	switch typ := strings.ToLower(f.typ); {
	case strings.HasPrefix(typ, "xid8"):
		from = transactionID
	case strings.Contains(typ, "time"), strings.Contains(typ, "date"):
		from = clock
	}
	assignment, err := regexp.Compile(`(?is)` + before + "[\"`\\[]?" + regexp.QuoteMeta(f.name) + "[\"`\\]]?\\s*:?=")
	if err != nil { // unreachable: the name is quoted
		return trigger{}
	}
	for _, t := range triggers {
		if assignment.MatchString(t.body) && from.MatchString(t.body) {
			return t
		}
	}
	return trigger{}
}

// eachFact reads columns as rows of name, type, nullable, default, numbered, extra and the mechanism that sets it at
// each update.
func eachFact(ctx context.Context, s *Source, to *catalog, triggers []trigger, before, statement string, args ...any) error {
	return eachRow(ctx, s.db, statement, args, func(row []string) error {
		f := fact{name: row[0], typ: row[1], nullable: isTrue(row[2]), initial: row[3], numbered: isTrue(row[4]), extra: row[5], updated: row[6]}
		if t := sets(triggers, before, f); f.updated == "" && t.name != "" {
			f.updated = "the trigger " + t.name
		}
		to.columns = append(to.columns, f)
		return nil
	})
}

// eachIndex reads the columns of indexes as rows of index, column, unique and primary, in order.
func eachIndex(ctx context.Context, s *Source, to *catalog, statement string, args ...any) error {
	var primary string
	err := eachRow(ctx, s.db, statement, args, func(row []string) error {
		at := slices.IndexFunc(to.indexes, func(i index) bool { return i.name == row[0] })
		if at < 0 {
			at = len(to.indexes)
			to.indexes = append(to.indexes, index{name: row[0], unique: isTrue(row[2])})
		}
		if isTrue(row[3]) {
			primary = row[0]
		}
		to.indexes[at].columns = append(to.indexes[at].columns, row[1])
		return nil
	})
	slices.SortStableFunc(to.indexes, func(a, b index) int {
		return cmp.Compare(btoi(b.name == primary), btoi(a.name == primary))
	})
	return err
}

func eachTrigger(ctx context.Context, s *Source, statement string, args ...any) (all []trigger, err error) {
	err = eachRow(ctx, s.db, statement, args, func(row []string) error {
		all = append(all, trigger{row[0], row[1]})
		return nil
	})
	return all, err
}

func isTrue(text string) bool { return text == "1" || text == "true" }

func btoi(is bool) int {
	if is {
		return 1
	}
	return 0
}

// fact returns the description of a column; ok is false for one that the catalog does not have, such as some columns of
// a view.
func (c catalog) fact(name string) (f fact, ok bool) {
	at := slices.IndexFunc(c.columns, func(f fact) bool { return strings.EqualFold(f.name, name) })
	if at < 0 {
		return f, false
	}
	return c.columns[at], true
}

// keys returns the columns of the primary key, or else of the shortest unique index without nullable columns. why names
// the index.
func (c catalog) keys() (columns []string, why string) {
	usable := func(i index) bool {
		return i.unique && !slices.ContainsFunc(i.columns, func(name string) bool {
			f, ok := c.fact(name)
			return !ok || f.nullable
		})
	}
	var found *index
	for n, i := range c.indexes {
		if usable(i) && (found == nil || n > 0 && found != &c.indexes[0] && len(i.columns) < len(found.columns)) {
			found = &c.indexes[n]
		}
	}
	if found == nil {
		return nil, ""
	}
	return found.columns, found.name
}

// serves reports whether an index has the order. appended are the columns that the database itself appends to each
// index.
func (i index) serves(order, appended []string) bool {
	columns := i.columns
	if i.unique && len(columns) <= len(order) && slices.EqualFunc(columns, order[:len(columns)], strings.EqualFold) {
		return true
	}
	for _, name := range appended {
		if !slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, name) }) {
			columns = append(slices.Clip(columns), name)
		}
	}
	return len(columns) >= len(order) && slices.EqualFunc(columns[:len(order)], order, strings.EqualFold)
}
