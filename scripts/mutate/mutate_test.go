package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each kind of change is found in its place, and nothing else.
func TestMutants(t *testing.T) {
	t.Parallel()
	found, err := mutants("a/a.go", []byte(`package a

import "fmt"

type T struct { N [4]int }

func f(n int) error {
	if n < 2 && true {
		fmt.Println(n + 1)
	}
	for { break }
	return err
}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.String())
	}
	want := []string{
		"a/a.go:8: n < 2 && true becomes !(n < 2 && true)",
		"a/a.go:8: && becomes ||",
		"a/a.go:8: < becomes <=",
		"a/a.go:8: < becomes >",
		"a/a.go:8: 2 becomes (2+1)",
		"a/a.go:8: true becomes false",
		"a/a.go:9: fmt.Println(n + 1) is left out",
		"a/a.go:9: + becomes -",
		"a/a.go:9: 1 becomes (1+1)",
		"a/a.go:11: break becomes continue",
		"a/a.go:12: return err becomes return nil",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, m := range found {
		if _, err := mutants(m.file, m.source); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}
