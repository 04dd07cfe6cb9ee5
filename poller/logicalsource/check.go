package logicalsource

import (
	"context"
	"fmt"
	"strings"
)

// Check refuses a setup in which changes could not be read, or only partly.
func (s *Source) Check(ctx context.Context) (advice []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	advice, err = s.check(ctx)
	return advice, s.wrong("check", err)
}

func (s *Source) check(ctx context.Context) (advice []string, err error) {
	var level, keep string
	var may bool
	if err := s.db.QueryRowContext(ctx, `SELECT current_setting('wal_level'), coalesce(current_setting('max_slot_wal_keep_size', true), '-1'),
		(SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user)`).Scan(&level, &keep, &may); err != nil {
		return nil, err
	}
	if level != "logical" {
		return nil, fmt.Errorf("%w: wal_level is %s: set it to logical and restart the server", ErrSetup, level)
	}
	if !may {
		return nil, fmt.Errorf("%w: the user may not read replication slots: ALTER ROLE ... WITH REPLICATION", ErrSetup)
	}
	if err := s.checkPublications(ctx); err != nil {
		return nil, err
	}
	now, err := s.slot(ctx, ErrSetup)
	if err != nil {
		return nil, err
	}
	if keep == "-1" {
		advice = append(advice, "max_slot_wal_keep_size is -1: a poller that stands still fills the server's disk with log. Set it to what the disk can spare; a slot that needs more is lost then")
	}
	if text := s.advice(now); text != "" {
		advice = append(advice, text)
	}
	return advice, nil
}

// checkPublications refuses missing publications, and tables whose updates and deletes would not name the row.
func (s *Source) checkPublications(ctx context.Context) error {
	for _, c := range []struct{ statement, wrong string }{
		{`SELECT string_agg(quote_ident(n), ', ') FROM unnest($1::text[]) n WHERE NOT EXISTS (SELECT 1 FROM pg_publication WHERE pubname = n)`,
			"there is no publication %s: CREATE PUBLICATION ... FOR TABLE ..., and make the slot after that"},
		{`SELECT string_agg(quote_ident(n), ', ') FROM unnest($1::text[]) n WHERE NOT EXISTS (SELECT 1 FROM pg_publication_tables WHERE pubname = n)`,
			"the publication %s has no tables: ALTER PUBLICATION ... ADD TABLE ..."},
		{`SELECT string_agg(DISTINCT t.schemaname || '.' || t.tablename, ', ') FROM pg_publication_tables t JOIN pg_publication p USING (pubname)
			JOIN pg_namespace n ON n.nspname = t.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
			WHERE p.pubname = ANY($1::text[]) AND (p.pubupdate OR p.pubdelete) AND c.relkind = 'r'
			AND (c.relreplident = 'n' OR c.relreplident = 'd' AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary))`,
			"nothing names the rows of %s: give it a primary key, or ALTER TABLE ... REPLICA IDENTITY. Until then the server refuses updates and deletes"},
		{`SELECT string_agg(DISTINCT t.schemaname || '.' || t.tablename, ', ') FROM pg_publication_tables t
			JOIN pg_namespace n ON n.nspname = t.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
			JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = '` + member + `' AND NOT a.attisdropped
			WHERE t.pubname = ANY($1::text[])`,
			"%s has a column " + member + ", which is the name of a member of each row: rename the column"},
	} {
		var found *string
		if err := s.db.QueryRowContext(ctx, c.statement, s.config.Publications).Scan(&found); err != nil {
			return err
		}
		if found != nil {
			return fmt.Errorf("%w: "+c.wrong, ErrSetup, *found)
		}
	}
	return nil
}

// literal writes a text as SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// identifier writes a name as SQL.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
