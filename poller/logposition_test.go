package poller

import "testing"

// Log positions are ordered by their numbers and not as text, and have one text each.
func TestLogPositions(t *testing.T) {
	t.Parallel()
	ordered := []string{"0/0", "0/9", "0/A", "0/10", "0/FFFFFFFF", "1/0", "1/0:1", "1/0:9", "1/0:10", "1/1", "A/0", "10/0", "FFFFFFFF/FFFFFFFF", "FFFFFFFF/FFFFFFFF:9999999999999999999"}
	for i, a := range ordered {
		p, ok := ParseLogPosition(a)
		if !ok || p.String() != a {
			t.Errorf("%s is read as %s, %v", a, p, ok)
		}
		if err := (Cursor{Kind: "lsn", Value: a}).check(); err != nil {
			t.Error(err)
		}
		for j, b := range ordered {
			want := min(1, max(-1, i-j))
			if order, ok := compare(Cursor{Kind: "lsn", Value: a}, Cursor{Kind: "lsn", Value: b}); order != want || !ok {
				t.Errorf("compare(%s, %s) = %d, %v", a, b, order, ok)
			}
		}
	}
	for _, same := range [][2]string{{"16/b374d848", "16/B374D848"}, {"00000016/0B:0", "16/B"}} {
		if order, ok := compare(Cursor{Kind: "lsn", Value: same[0]}, Cursor{Kind: "lsn", Value: same[1]}); order != 0 || !ok {
			t.Errorf("%s and %s: %d, %v", same[0], same[1], order, ok)
		}
	}
	for _, bad := range []string{"", "16", "16/", "/16", "16/123456789", "x/1", "1/1:", "1/1:-1", "1/1:99999999999999999999", "1/1:18446744073709551616", " 1/1", "1/1\n"} {
		if p, ok := ParseLogPosition(bad); ok {
			t.Errorf("%q is read as %s", bad, p)
		}
		if err := (Cursor{Kind: "lsn", Value: bad}).check(); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
