package azurite

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vibedata/roundhouse/internal/testenv"
)

// A killed parent cannot close anything: the kernel ends its Azurite.
func TestDiesWithParent(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", asParent, testenv.Port(t))) // free afterwards
	cmd.Stderr = os.Stderr
	output := testenv.Must(cmd.StdoutPipe())(t)
	testenv.OK(t, cmd.Start())
	line, readErr := bufio.NewReader(output).ReadString('\n')
	killErr := cmd.Process.Kill()
	_ = cmd.Wait() // "killed"
	if readErr != nil || killErr != nil {
		t.Fatal(readErr, killErr)
	}
	u := testenv.Must(url.Parse(strings.TrimSpace(line)))(t)
	testenv.Until(t, "the end of the Azurite whose parent was killed", func() bool {
		conn, err := net.Dial("tcp", u.Host)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}
