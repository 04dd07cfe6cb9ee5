package wallclock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/architecture/wallclock"
)

// The rule finds each way to wait for a guessed time, and follows calls from a test to its helpers but not into
// bubbles.
func TestFind(t *testing.T) {
	t.Parallel()
	const helpers = `package p
		func pause() { time.Sleep(1) }
		func sleeps(*testing.T) { time.Sleep(1) }
		func inBubble(t *testing.T, f func(*testing.T)) { t.Run("", func(t *testing.T) { synctest.Test(t, f) }) }
		func each(t *testing.T, all map[string]func(*testing.T)) { for _, f := range all { synctest.Test(t, f) } }
		func both(t *testing.T, f func(*testing.T)) { f(t); synctest.Test(t, f) }
		type slow struct{}
		func (slow) Send() { time.Sleep(1) }
		func (slow) rest() { time.Sleep(1) }
		func TestA(t *testing.T) { `
	const inTest, inPause = "time.Sleep in TestA", "time.Sleep in pause"
	for name, test := range map[string]struct{ body, want string }{
		"nothing":                {},
		"sleep":                  {`time.Sleep(1)`, inTest},
		"a channel":              {`<-time.After(1)`, "time.After in TestA"},
		"a timer":                {`time.NewTimer(1)`, "time.NewTimer in TestA"},
		"a ticker":               {`for range time.Tick(1) {}`, "time.Tick in TestA"},
		"another ticker":         {`time.NewTicker(1)`, "time.NewTicker in TestA"},
		"a callback":             {`time.AfterFunc(1, nil)`, "time.AfterFunc in TestA"},
		"a limit":                {`context.WithTimeout(c, 1)`, "context.WithTimeout in TestA"},
		"a deadline":             {`context.WithDeadlineCause(c, d, e)`, "context.WithDeadlineCause in TestA"},
		"a connection":           {`conn.SetReadDeadline(end)`, "SetReadDeadline in TestA"},
		"a function value":       {`nap := time.Sleep; _ = nap`, inTest},
		"patience":               {`const patience = time.Minute`, "patience in TestA"},
		"a limit's name":         {`var startTimeout = 5 * time.Second`, "startTimeout in TestA"},
		"a loop":                 {`for time.Now().Before(end) {}`, "loop until a time in TestA"},
		"a loop with a way out":  {`for { if time.Now().After(end) { break } }`, "loop until a time in TestA"},
		"a comparison":           {`if time.Since(begin) > 5 {}`, "comparison with the time in TestA"},
		"another comparison":     {`if took := time.Since(begin); took > 5 {}`, "comparison with the time in TestA"},
		"a client":               {`_ = http.Client{Timeout: 5}`, "http.Client.Timeout in TestA"},
		"in a goroutine":         {`go func() { time.Sleep(1) }()`, inTest},
		"in a subtest":           {`t.Run("", func(t *testing.T) { time.Sleep(1) })`, inTest},
		"in a helper":            {`pause()`, inPause},
		"in a helper as a value": {`use(pause)`, inPause},
		"in a local function":    {`f := func() { time.Sleep(1) }; f()`, inTest},
		"through an interface":   {`use(slow{})`, "time.Sleep in slow.Send"},
		"in a method":            {`slow{}.rest()`, "time.Sleep in slow.Send, time.Sleep in slow.rest"},
		"inside and outside":     {`both(t, func(*testing.T) { time.Sleep(1) })`, inTest},
		"a table":                {`all := []struct{ f func() }{{f: func() { time.Sleep(1) }}}; all[0].f()`, inTest},
		"a bubble":               {`synctest.Test(t, func(t *testing.T) { time.Sleep(1); pause(); slow{}.rest() })`, ""},
		"a bubble by name":       {`synctest.Test(t, sleeps)`, ""},
		"a helper's bubble":      {`inBubble(t, func(t *testing.T) { go func() { time.Sleep(1) }() })`, ""},
		"a bubble's function":    {`f := func() { time.Sleep(1) }; inBubble(t, func(*testing.T) { f() })`, ""},
		"a map of bubbles":       {`m := map[string]func(*testing.T){"": func(*testing.T) { pause() }}; m["b"] = sleeps; each(t, m)`, ""},
		"a bubble's table":       {`m := []struct{ f func() }{{func() { time.Sleep(1) }}}; inBubble(t, func(*testing.T) { m[0].f() })`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := parser.ParseFile(token.NewFileSet(), "p_test.go", helpers+test.body+"}", 0)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for place, uses := range wallclock.Find([]wallclock.Package{{Dir: "p", Files: map[string]*ast.File{"p_test.go": file}}}) {
				for _, use := range uses {
					got = append(got, use+" in "+strings.TrimPrefix(place, "p_test.go:"))
				}
			}
			slices.Sort(got)
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}
