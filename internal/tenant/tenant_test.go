package tenant

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSees(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		caller, owner string
		want          bool
	}{
		{"", "", true}, {"", "contoso", true}, {"contoso", "", false}, {"contoso", "CONTOSO", true}, {"contoso", "fabrikam", false},
	} {
		if got := Sees(c.caller, c.owner); got != c.want {
			t.Errorf("Sees(%q, %q) = %v", c.caller, c.owner, got)
		}
	}
}

// Keys are made of Fold's results, so it has to agree with the comparison for any id.
func TestFoldAgreesWithTheComparison(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		letters := rapid.SliceOfN(rapid.SampledFrom([]string{"k", "K", "\u212a", "s", "S", "\u017f", "ß", "ẞ", "σ", "ς", "Σ", "i", "İ", "ı", "-", "7", "\xff", "\ufffd"}), 0, 3)
		a, b := strings.Join(letters.Draw(rt, "a"), ""), strings.Join(letters.Draw(rt, "b"), "")
		if got, want := Fold(a) == Fold(b), strings.EqualFold(a, b); got != want {
			rt.Errorf("%q and %q: the same key %v, equal %v", a, b, got, want)
		}
	})
}
