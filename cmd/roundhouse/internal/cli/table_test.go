package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type cell struct{ id, text, more string }

func TestTable(t *testing.T) {
	t.Parallel()
	columns := []column[cell]{
		{title: "ID", text: func(c cell) string { return c.id }},
		{title: "TEXT", text: func(c cell) string { return c.text }, cut: true},
		{title: "MORE", text: func(c cell) string { return c.more }, cut: true},
	}
	long := strings.Repeat("é", 100)
	rows := []cell{{"1", "a\nb\x1b[2J\u202e", ""}, {strings.Repeat("9", 36), long, "short"}}
	const width = 80
	var narrow strings.Builder
	must(t, writeTable(&narrow, width, columns, rows))
	for line := range strings.Lines(narrow.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("%q steers the terminal", line)
		}
	}
	if !strings.Contains(narrow.String(), rows[1].id) || !strings.Contains(narrow.String(), "é…") {
		t.Error(narrow.String())
	}
	var out strings.Builder
	must(t, writeTable(&out, 0, columns, rows))
	if !strings.Contains(out.String(), long) {
		t.Error("cut where nothing bounds it")
	}
}

// Ids that leave no room for the rest get a line of their own, unshortened.
func TestTableOfLongIDs(t *testing.T) {
	t.Parallel()
	columns := []column[cell]{
		{title: "TEXT", text: func(c cell) string { return c.text }, cut: true},
		{title: "ENGINE", text: func(c cell) string { return c.more }},
		{title: "ROW KEY", text: func(c cell) string { return c.id }},
	}
	var out strings.Builder
	must(t, writeTable(&out, 30, columns, []cell{{strings.Repeat("9", 30), strings.Repeat("x", 40), "hmac"}}))
	want := "TEXT\n    ENGINE  ROW KEY\n" + strings.Repeat("x", 29) + "…\n    hmac  " + strings.Repeat("9", 30) + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	members, err := membersOf([]byte(`{"b":"x\ny","a":1.50,"o":{"k":[1,2]},"n":null}`))
	must(t, err)
	want := []member{{"b", "x\ny"}, {"a", "1.50"}, {"o", `{"k":[1,2]}`}, {"n", ""}}
	if diff := cmp.Diff(want, members, cmp.AllowUnexported(member{})); diff != "" {
		t.Error(diff)
	}
}
