package pebble

import (
	"net"
	"testing"

	"github.com/miekg/dns"
)

// names is a DNS server: every name has the address 127.0.0.1.
type names struct{}

// start starts the server, over TCP as Pebble requires, and returns its address.
func (n names) start(t testing.TB) string {
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

func (n names) answer(w dns.ResponseWriter, question *dns.Msg) {
	reply := new(dns.Msg)
	reply.SetReply(question)
	for _, q := range question.Question {
		header := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET}
		if q.Qtype == dns.TypeA {
			reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: net.IPv4(127, 0, 0, 1)})
		}
	}
	// Ignore a client that disconnected.
	_ = w.WriteMsg(reply)
}
