// Package addresses shows where values are in memory.
package addresses

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/vibedata/roundhouse/orchestrator"
)

type order struct {
	ID   string
	Next *order
}

type line struct {
	Price int
	due   time.Time
}

type named struct{ parent *named }

func (n *named) String() string { return "named" }

const key = "order-%[2]p-%[1]d"

func identity(x any) string { return fmt.Sprintf("%p", x) } // want identity:`formats an address with %p`

func logf(format string, operands ...any) string { return fmt.Sprintf(format, operands...) }

var _ = orchestrator.NewOrchestrator("addresses", func(ctx *orchestrator.Context, in order) (string, error) {
	n := 3
	_ = fmt.Sprintf("order-%p", &in)        // want `^orchestrator code formats an address with %p: addresses differ in every process`
	_ = fmt.Sprintf("%d%% %#-20p", n, &in)  // want `formats an address with %p: `
	_ = fmt.Sprintf(key, n, &in)            // want `formats an address with %p: `
	_ = fmt.Errorf("no %s: %v", in.ID, &n)  // want `formats an address with %v: `
	_ = fmt.Sprintf("%+v", in)              // want `formats an address with %v: `
	_ = fmt.Sprintf("%v", []*int{&n})       // want `formats an address with %v: `
	_ = fmt.Sprintf("%v", line{})           // want `formats an address with %v: `
	_ = fmt.Sprintf("%x", &n)               // want `formats an address with %x: `
	_ = fmt.Sprint("in", &n)                // want `formats an address: `
	_ = fmt.Sprintln(ctx.Now)               // want `formats an address: `
	_ = string(fmt.Appendf(nil, "%p", &in)) // want `formats an address with %p: `
	_ = logf("%p", &in)                     // want `formats an address with %p: `
	_ = uintptr(unsafe.Pointer(&in))        // want `converts an address to a number: `
	_ = reflect.ValueOf(&in).Pointer()      // want `calls reflect\.Value\.Pointer: addresses differ`
	var b strings.Builder
	fmt.Fprintf(&b, "%6p", &in) // want `formats an address with %p: `
	return identity(&in), nil   // want `calls addresses\.identity, which formats an address with %p: `
})

var _ = orchestrator.NewOrchestrator("fine", func(ctx *orchestrator.Context, in line) (string, error) {
	err := errors.New("sold out")
	text := fmt.Sprintf("%d%%p %s %v %*d %T", in.Price, ctx.Now(), &struct{ A int }{1}, 3, in.Price, &in)
	return logf("%s", text) + fmt.Sprint(err, &named{}, ctx.Now(), in.Price, map[string]int{}), fmt.Errorf("%w: %v", err, err)
})
