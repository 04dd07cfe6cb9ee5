package sqlsource

import (
	"testing"
	"time"
)

// The earliest NOW() of a transaction that a look did not see is the start of the oldest statement that ran at that
// look.
func TestSince(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 4, 7, 1, 23, second, 0, time.UTC) }
	const old, own, young = "2026-04-07 01:22:00", "2026-04-07 01:22:30", "2026-04-07 01:23:40"
	look := &mysqlLook{now: at(30), statements: map[string]time.Time{"7": at(10), "8": at(20)}, earliest: map[transaction]time.Time{
		{"5", old}: at(1), {"6", old}: {}, {"7", old}: at(5), {"0", own}: at(3)}}
	for _, test := range []struct {
		name string
		look *mysqlLook
		t    transaction
		want time.Time
	}{
		{"nobody can tell at the first look", nil, transaction{"5", young}, time.Time{}},
		{"nor of a prepared one", nil, transaction{"0", young}, time.Time{}},
		{"what is known is kept", look, transaction{"5", old}, at(1)},
		{"that nobody can tell, too", look, transaction{"6", old}, time.Time{}},
		{"although its connection's statement ran", look, transaction{"7", old}, at(5)},
		{"a prepared one is kept", look, transaction{"0", own}, at(3)},
		{"the statement that ran has begun it", look, transaction{"8", young}, at(20)},
		{"another one of a connection that had one", look, transaction{"7", young}, at(10)},
		{"a statement that started since has begun it", look, transaction{"9", young}, at(30)},
		{"one of a connection that was idle in another one", look, transaction{"5", young}, at(30)},
		{"a prepared one may be of any statement", look, transaction{"0", young}, at(10)},
		{"without statements, it is of one that started since", &mysqlLook{now: at(30)}, transaction{"0", young}, at(30)},
		{"or is one that was open and is prepared now", &mysqlLook{now: at(30), statements: map[string]time.Time{"8": at(20)},
			earliest: map[transaction]time.Time{{"5", young}: at(2), {"4", old}: at(1)}}, transaction{"0", young}, at(2)},
		{"two that were prepared in one second have one name", &mysqlLook{now: at(30), earliest: map[transaction]time.Time{{"5", young}: at(2), {"0", young}: at(4)}},
			transaction{"0", young}, at(2)},
		{"or one that a statement has begun since", &mysqlLook{now: at(30), statements: map[string]time.Time{"8": at(1)}, earliest: map[transaction]time.Time{{"0", young}: at(4)}},
			transaction{"0", young}, at(1)},
		{"of which nobody can tell, either", &mysqlLook{now: at(30), earliest: map[transaction]time.Time{{"5", young}: {}}}, transaction{"0", young}, time.Time{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.look.since(test.t); !got.Equal(test.want) {
				t.Errorf("%v is since %v, want %v", test.t, got, test.want)
			}
		})
	}
}
