package dev

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vibedata/roundhouse/cmd/roundhouse/internal/devkey"
)

// url returns the address of the app.
func (p *platform) url() string {
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port))
}

// console returns the address of the console, with the key, which the app removes from it when it is opened.
func (p *platform) console() string {
	address := p.url() + "/api/console/"
	if p.key != "" {
		address += "?code=" + url.QueryEscape(p.key)
	}
	return address
}

// showPaths prints the next steps: the address to open in a browser, and lines to paste into a shell, with the key.
func (p *platform) showPaths(w io.Writer) {
	fmt.Fprintf(w, "\nOpen the console in a browser\n  %s\n\nGo on with\n", p.console())
	curl := "curl"
	p.showKey(w)
	if p.key != "" {
		curl = `curl -H "x-functions-key: $KEY"`
	}
	for _, path := range []string{"/api/engines", "/api/history", "/api/dlq", "/admin/functions"} {
		fmt.Fprintf(w, "  %s %s%s\n", curl, p.url(), path)
	}
	storage := "UseDevelopmentStorage=true"
	if p.Storage != DefaultStorage() {
		storage = "that of the emulator, with these ports"
	}
	fmt.Fprintf(w, "Storage is Azurite on the ports %s (blob, queue, table); its connection string is %s.\n\nCtrl-C stops everything.\n", &p.Storage, storage)
}

// showKey prints the key as a line to paste into a shell.
func (p *platform) showKey(w io.Writer) {
	if p.key != "" {
		fmt.Fprintf(w, "  KEY=%s   # or KEY=$(cat %s)\n", p.key, fromHere(devkey.File(p.State)))
	}
}

// fromHere returns a path relative to the current folder, if it is below that.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if relative, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(relative, "..") {
		return relative
	}
	return path
}
