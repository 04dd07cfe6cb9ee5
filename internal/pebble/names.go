package pebble

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// names is a DNS server: every name has the address 127.0.0.1, and some have TXT records.
type names struct {
	mu  sync.Mutex
	txt map[string][]string
}

// start starts the server, over TCP as Pebble asks, and returns its address.
func (n *names) start(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan struct{}), make(chan error, 1)
	server := &dns.Server{Listener: listener, Handler: dns.HandlerFunc(n.answer), NotifyStartedFunc: func() { close(started) }}
	go func() { ended <- server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func (n *names) answer(w dns.ResponseWriter, question *dns.Msg) {
	reply := new(dns.Msg)
	reply.SetReply(question)
	for _, q := range question.Question {
		header := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET}
		switch q.Qtype {
		case dns.TypeA:
			reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: net.IPv4(127, 0, 0, 1)})
		case dns.TypeTXT:
			n.mu.Lock()
			for _, value := range n.txt[key(q.Name)] {
				reply.Answer = append(reply.Answer, &dns.TXT{Hdr: header, Txt: []string{value}})
			}
			n.mu.Unlock()
		}
	}
	// A client that went away is its own business.
	_ = w.WriteMsg(reply)
}

func (n *names) add(name, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.txt == nil {
		n.txt = map[string][]string{}
	}
	n.txt[key(name)] = append(n.txt[key(name)], value)
}

func (n *names) remove(name, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.txt[key(name)] = slices.DeleteFunc(n.txt[key(name)], func(v string) bool { return v == value })
}

// key is a name without its final dot and its case.
func key(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
