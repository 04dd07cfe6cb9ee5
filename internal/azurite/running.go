package azurite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// probeTimeout bounds the probe of one port. Azurite answers in milliseconds.
const probeTimeout = 2 * time.Second

// ErrBusy means that a port is taken by another program, or by a different service of Azurite.
var ErrBusy = errors.New("port is taken")

// Running reports whether an Azurite listens on all three of these loopback ports. False without an error means that
// all three are free. Every other state is an error that names each port: ErrBusy when another program listens there,
// or when only some of the three are Azurite's.
func Running(ctx context.Context, blobPort, queuePort, tablePort int) (bool, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: probeTimeout}
	var taken []error
	running := 0
	for _, s := range []struct {
		name string
		port int
	}{{"Blob", blobPort}, {"Queue", queuePort}, {"Table", tablePort}} {
		server, err := probe(ctx, client, s.port)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
		case ctx.Err() != nil:
			return false, fmt.Errorf("look for azurite: %w", ctx.Err())
		case err == nil && strings.HasPrefix(server, "Azurite-"+s.name+"/"):
			running++
			taken = append(taken, fmt.Errorf("%w: %d, by Azurite's %s service, while not all of its services run on the ports asked for: stop it", ErrBusy, s.port, s.name))
		default:
			taken = append(taken, fmt.Errorf("%w: %d (for the %s service), by a program that is not Azurite: stop it, or choose another port", ErrBusy, s.port, s.name))
		}
	}
	if running == 3 {
		return true, nil
	}
	return false, errors.Join(taken...)
}

// probe returns the Server header of the program that listens on a port.
func probe(ctx context.Context, client *http.Client, port int) (string, error) {
	address := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + "/"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	return resp.Header.Get("Server"), resp.Body.Close()
}
