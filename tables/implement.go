package tables

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// The exported names of this file are for implementations of Store, such as Memory and the adapter in package azure.
// Implementations that check requests with them accept and reject the same ones.

// CheckTable checks a table name by the service's rules: 3 to 63 ASCII letters and digits, a letter first. It is for
// implementations of Store.
func CheckTable(name string) error {
	if len(name) < 3 || len(name) > 63 {
		return fmt.Errorf("%w: table name %q: use 3 to 63 characters", ErrInvalid, name)
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("%w: table name %q: use ASCII letters and digits, a letter first", ErrInvalid, name)
		}
	}
	if name == "tables" {
		return fmt.Errorf("%w: table name %q is reserved", ErrInvalid, name)
	}
	return nil
}

// CheckKey checks both parts of a key by the rules that Key names. It is for implementations of Store.
func CheckKey(k Key) error {
	if err := checkKeyPart("partition key", k.Partition); err != nil {
		return err
	}
	return checkKeyPart("row key", k.Row)
}

// CheckOps checks all operations of an Apply against the limits. An error of one operation is an *OpError. It is for
// implementations of Store.
func CheckOps(ops []Op) error {
	switch {
	case len(ops) == 0:
		return fmt.Errorf("%w: no operations", ErrInvalid)
	case len(ops) > maxOps:
		return fmt.Errorf("%w: %d operations of at most %d in a transaction", ErrTooLarge, len(ops), maxOps)
	}
	size := 0
	for i := range ops {
		if err := checkOp(&ops[i]); err != nil {
			return &OpError{Index: i, Key: ops[i].Entity.Key, Err: err}
		}
		size += upperSize(&ops[i])
	}
	if len(ops) == 1 {
		return nil
	}
	if err := checkRows(ops); err != nil {
		return err
	}
	if size <= maxRequest {
		return nil
	}
	size = 0
	for i := range ops {
		size += RequestSize(ops[i])
	}
	if size > maxRequest {
		return fmt.Errorf("%w: the transaction takes %d bytes of at most %d", ErrTooLarge, size, maxRequest)
	}
	return nil
}

// Lookup is a Query or a Scan in the form for implementations of Store: one of the two key parts is a single key, the
// other a range. Check it before use.
type Lookup struct {
	Partition, Row Span
	// Where, NotBefore and Select are those of the Query or Scan.
	Where     map[string]any
	NotBefore map[string]time.Time
	Select    []string
	// Limit is the maximum number of entities of the page; it is never 0.
	Limit int

	continuation string
}

// Span selects keys of one key part: the single key Is if One is set, otherwise those with From <= key < To, where ""
// sets no bound.
type Span struct {
	One      bool
	Is       string
	From, To string
}

// Lookup returns the query in the form for implementations of Store.
func (q *Query) Lookup() *Lookup {
	return &Lookup{
		Partition: Span{One: true, Is: q.Partition},
		Row:       Span{From: q.From, To: q.To},
		Where:     q.Where, Select: q.Select, Limit: cmp.Or(q.Limit, maxPage), continuation: q.Continuation,
	}
}

// Lookup returns the scan in the form for implementations of Store.
func (s *Scan) Lookup() *Lookup {
	return &Lookup{
		Partition: Span{From: s.FromPartition, To: s.ToPartition},
		Row:       Span{One: !s.AnyRow, Is: s.Row},
		Where:     s.Where, NotBefore: s.NotBefore, Select: s.Select, Limit: cmp.Or(s.Limit, maxPage), continuation: s.Continuation,
	}
}

// Check checks the lookup against the limits. Resume checks its continuation.
func (l *Lookup) Check() error {
	if err := cmp.Or(checkSpan("partition", l.Partition), checkSpan("row", l.Row)); err != nil {
		return err
	}
	switch {
	case l.Limit < 0 || l.Limit > maxPage:
		return fmt.Errorf("%w: limit %d: use 1 to %d, or 0 for %d", ErrInvalid, l.Limit, maxPage, maxPage)
	case len(l.Where)+len(l.NotBefore) > maxEqualities:
		return fmt.Errorf("%w: %d conditions of at most %d", ErrTooLarge, len(l.Where)+len(l.NotBefore), maxEqualities)
	case len(l.Select) > maxCustom:
		return fmt.Errorf("%w: %d selected properties of at most %d", ErrTooLarge, len(l.Select), maxCustom)
	}
	for name, v := range l.Where {
		if err := errors.Join(checkPropertyName(name), checkWhereValue(v)); err != nil {
			return fmt.Errorf("where %s: %w", clip(name), err)
		}
	}
	for name, v := range l.NotBefore {
		if err := errors.Join(checkPropertyName(name), checkWhereValue(v)); err != nil {
			return fmt.Errorf("not before %s: %w", clip(name), err)
		}
	}
	for _, name := range l.Select {
		if err := checkPropertyName(name); err != nil {
			return fmt.Errorf("select %s: %w", clip(name), err)
		}
	}
	return nil
}

// Next returns the Page.Next of a page after which the lookup continues at a partition and row. The implementation
// chooses their contents: Resume returns them.
func (l *Lookup) Next(partition, row string) string {
	return continuation{Query: l.Partition.Is, Scan: l.Row.Is, Partition: partition, Row: row}.text()
}

// Resume returns where the lookup continues: the arguments of Next for the page before, or two empty strings for the
// first page. A continuation of another query, scan or program is an ErrInvalid.
func (l *Lookup) Resume() (partition, row string, err error) {
	c, err := l.resume()
	return c.Partition, c.Row, err
}
