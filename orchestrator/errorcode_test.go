package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"
)

// VaultError is an exported error type of user code.
type VaultError struct{}

func (*VaultError) Error() string { return "no" }

type hidden struct{ error }

// Codes of errors are words for operators, not types of a program.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"text":             {errors.New("no"), "error"},
		"wrapped text":     {fmt.Errorf("while: %w", errors.New("no")), "error"},
		"several":          {errors.Join(errors.New("a"), errors.New("b")), "error"},
		"declared":         {fmt.Errorf("while: %w", &VaultError{}), "VaultError"},
		"not for others":   {hidden{errors.New("no")}, "error"},
		"refused":          {&url.Error{Op: "Get", URL: "http://x", Err: refused}, "network"},
		"no host":          {&net.DNSError{Err: "no such host"}, "network"},
		"late host":        {&net.DNSError{IsTimeout: true}, "timeout"},
		"late":             {fmt.Errorf("while: %w", context.DeadlineExceeded), "timeout"},
		"late activity":    {&timeoutError{}, "timeout"},
		"recorded":         {fmt.Errorf("while: %w", &Failure{Code: "TooLarge"}), "TooLarge"},
		"an errno":         {syscall.ENOSPC, "Errno"},
		"permanent":        {Permanent(errors.New("no")), "error"},
		"permanent vault":  {Permanent(&VaultError{}), "VaultError"},
		"beside the vault": {errors.Join(&VaultError{}, errors.New("no")), "VaultError"},
	} {
		if got := errorCode(test.err); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
