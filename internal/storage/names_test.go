package storage

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"abc", "a-b-c", "0ab", strings.Repeat("a", 63)} {
		if err := CheckName("queue", good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "ab", "-ab", "ab-", "a--b", "aBc", "a_b", "a.b", strings.Repeat("a", 64), "ab\x00"} {
		if err := CheckName("queue", bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want %v", bad, err, ErrInvalid)
		}
	}
}
