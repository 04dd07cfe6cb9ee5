package secrets_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vibedata/roundhouse/services/secrets"
)

func TestName(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("0123456789abcdef", 2)
	cases := []struct {
		what, kind, id string
		want           string // the whole name when it ends in "$", otherwise its prefix
	}{
		{"legal id", "hmac", "inst-001", "hmac-inst-001$"},
		{"uuid", "hmac", "3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11", "hmac-3f0c0a68-2f3d-4d0e-9a55-0f4f3c1a7b11$"},
		{"longest readable", "hmac", strings.Repeat("a", 122), "hmac-" + strings.Repeat("a", 122) + "$"},
		{"too long", "hmac", strings.Repeat("a", 123), "hmac-aaa"},
		{"slashes", "hmac", "/subscriptions/S1/x", "hmac--subscriptions-s1-x-"},
		{"unicode", "hmac", "größe", "hmac-gr--e-"},
		{"upper case", "hmac", "ABC", "hmac-abc-"},
		{"empty", "hmac", "", "hmac--"},
		{"looks hashed", "hmac", "x-" + hash, "hmac-x-" + hash + "-"},
		{"kind with a dash", "a-b", "c", "a-b-c-"},
	}
	for _, c := range cases {
		got := secrets.Name(c.kind, c.id)
		want, whole := strings.CutSuffix(c.want, "$")
		if !secrets.ValidName(got) || whole && got != want || !whole && (got == want || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: Name(%q, %q) = %q, want %q", c.what, c.kind, c.id, got, c.want)
		}
	}
}

func TestNameNeverShared(t *testing.T) {
	t.Parallel()
	if one, two := secrets.Name("a-", "/"), secrets.Name("a", "-/"); one == two {
		t.Errorf("two kinds share the name %s", one)
	}
	// Few letters, so that ids collide with each other's sanitised forms; and names used as ids, as a forger would.
	id := rapid.StringOfN(rapid.SampledFrom([]rune("aA-/ü")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		kinds := [2]string{}
		ids := [2]string{}
		for i := range 2 {
			kinds[i] = rapid.SampledFrom([]string{"a", "aa", "a-a", "a-", ""}).Draw(t, "kind")
			ids[i] = id.Draw(t, "id")
		}
		if rapid.Bool().Draw(t, "forge") {
			_, ids[1], _ = strings.Cut(secrets.Name(kinds[0], ids[0]), "-")
		}
		one, two := secrets.Name(kinds[0], ids[0]), secrets.Name(kinds[1], ids[1])
		if !secrets.ValidName(one) || !secrets.ValidName(two) {
			t.Fatalf("illegal name %q or %q", one, two)
		}
		same := kinds[0] == kinds[1] && ids[0] == ids[1]
		if strings.EqualFold(one, two) != same {
			t.Fatalf("Name%q = %q and Name%q = %q", []string{kinds[0], ids[0]}, one, []string{kinds[1], ids[1]}, two)
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add("hmac", "/subscriptions/0/resourceGroups/ü", "x")
	f.Add("hmac", "a", "A")
	f.Fuzz(func(t *testing.T, kind, one, two string) {
		a, b := secrets.Name(kind, one), secrets.Name(kind, two)
		if !secrets.ValidName(a) || !secrets.ValidName(b) {
			t.Errorf("illegal name %q or %q", a, b)
		}
		if strings.EqualFold(a, b) != (one == two) {
			t.Errorf("Name(%q) = %q and Name(%q) = %q", one, a, two, b)
		}
	})
}
