// Package globals reads variables of packages that change.
package globals

import (
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/vibedata/roundhouse/orchestrator"
	"github.com/vibedata/roundhouse/orchestrator/determinism/testdata/src/globals/config"
)

var (
	limit   = 3                           // want limit:`is set by globals\.SetLimit`
	verbose bool                          // want verbose:`is set by globals\.main`
	prices  = map[string]int{}            // want prices:`is set by globals\.load`
	tariff  struct{ Rate int }            // want tariff:`is set by globals\.load`
	last    string                        // want last:`is set elsewhere`
	dice    = rand.New(rand.NewPCG(1, 2)) // want dice:`is set by globals\.roll`
	seen    state                         // want seen:`is set by globals\.observe`

	started = time.Now()          // want started:`calls time\.Now`
	region  = os.Getenv("REGION") // want region:`calls os\.Getenv`
	host    = hostname()          // want host:`calls globals\.hostname, which calls os\.Hostname`
	node    string                // want node:`calls globals\.hostname`
	names   = strings.Split("a", ",")
	pattern = regexp.MustCompile("^a")
	version int
	handles = map[string]func() time.Time{"now": time.Now} // want handles:`uses time\.Now`
	steps   = []func() int{func() int { return 1 }}
	charge  *orchestrator.Activity[int, int]
)

type state struct{ n int }

func (s *state) add() { s.n++ } // want add:`changes s\.n`

func init() { // want init:`.*`
	node = hostname()
	version = 3
	prepare()
}

func prepare() { names = append(names, "b") } // want prepare:`writes the package variable`

func hostname() string { // want hostname:`calls os\.Hostname`
	h, _ := os.Hostname()
	return h
}

// SetLimit may be called at any time.
func SetLimit(n int) { limit = n } // want SetLimit:`writes the package variable`

func load(b []byte) error { // want load:`writes the package variable`
	prices["a"] = 3
	return json.Unmarshal(b, &tariff)
}

func main() { // want main:`writes the package variable`
	flag.BoolVar(&verbose, "v", false, "")
	charge = orchestrator.NewActivity("charge", func(context.Context, int) (int, error) { return 0, nil })
}

func roll() int { return dice.IntN(6) } // want roll:`writes the package variable`

func observe() { seen.add() } // want observe:`calls globals\.state\.add, which changes s\.n, which all runs share`

var _ = orchestrator.NewActivity("remember", func(_ context.Context, in string) (string, error) {
	last = in
	return in, nil
})

func allowed(n int) bool { return n < limit } // want allowed:`reads globals\.limit, which is set by globals\.SetLimit`

var _ = orchestrator.NewOrchestrator("globals", func(ctx *orchestrator.Context, in int) (string, error) {
	if in > limit || verbose { // want `^orchestrator code reads globals\.limit, which is set by globals\.SetLimit: hand it in with the input, or return it from an activity$` `reads globals\.verbose, which is set by globals\.main: `
		return last, nil // want `reads globals\.last, which is set elsewhere: `
	}
	if prices["a"] > tariff.Rate || allowed(in) { // want `reads globals\.prices, ` `reads globals\.tariff, ` `calls globals\.allowed, which reads globals\.limit, `
		return region + host + node, nil // want `reads globals\.region, which calls os\.Getenv: ` `reads globals\.host, which calls globals\.hostname, ` `reads globals\.node, which calls globals\.hostname, `
	}
	if ctx.Now().After(started) { // want `reads globals\.started, which calls time\.Now: `
		return "", nil
	}
	_ = dice.IntN(6)       // want `writes the package variable globals\.dice: `
	_ = handles["now"]()   // want `calls globals\.handles, which uses time\.Now: `
	_ = seen.n             // want `reads the field n, which is set by globals\.state\.add: `
	if config.Limit < in { // want `reads config\.Limit, which is set by config\.Load: `
		return config.Name, nil
	}
	return "", nil
})

// client is made from a value that differs, but only its activity is used.
type client struct {
	url    string
	now    func() time.Time // want now:`uses time\.Now`
	charge *orchestrator.Activity[int, int]
}

func newClient(url string) *client { // want newClient:`uses time\.Now`
	c := &client{url: url, now: time.Now}
	c.charge = orchestrator.NewActivity("client", func(context.Context, int) (int, error) { return c.now().Day(), nil })
	return c
}

type limits struct {
	Region string
	Max    int
}

var (
	service = newClient(os.Getenv("URL"))
	bounds  = limits{Region: os.Getenv("REGION"), Max: 3} // want bounds:`calls os\.Getenv`
)

var _ = orchestrator.NewOrchestrator("bounds", func(ctx *orchestrator.Context, in int) (int, error) {
	if in > bounds.Max && bounds.Region == "west" { // want `reads globals\.bounds, which calls os\.Getenv: `
		return 0, nil
	}
	return service.charge.Call(ctx, in).Await()
})

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in int) (string, error) {
	if pattern.MatchString(names[0]) && version > in {
		return "", nil
	}
	_, err := charge.Call(ctx, steps[0]()).Await()
	limit := 3
	limit++
	return names[limit], err
})
