package local

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// proxy stands between a service and a server, so that the two can be cut from
// each other: while it is cut, connections stay open and nothing passes, as on a
// network that loses everything. (toxiproxy could do it with a server of its own
// and many more ways to fail; this is the one that is needed.)
type proxy struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	passes *sync.Cond
	isCut  bool
	closed bool
	open   map[net.Conn]struct{}
}

// newProxy forwards a free port of the loopback interface to the target.
func newProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen in front of %s: %w", target, err)
	}
	p := &proxy{listener: listener, target: target, open: map[net.Conn]struct{}{}}
	p.passes = sync.NewCond(&p.mu)
	go p.accept()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// cut stops or restores the flow.
func (p *proxy) cut(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = off
	p.passes.Broadcast()
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.open {
		_ = c.Close()
	}
	p.passes.Broadcast()
}

// wait returns when the flow is free, false when the proxy is closed.
func (p *proxy) wait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.isCut && !p.closed {
		p.passes.Wait()
	}
	return !p.closed
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		go p.serve(client)
	}
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	if !p.wait() {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return // the client sees its connection end, as it would without us
	}
	defer server.Close()
	p.mu.Lock()
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	ended := make(chan struct{}, 2)
	go func() { p.copy(server, client); ended <- struct{}{} }()
	go func() { p.copy(client, server); ended <- struct{}{} }()
	<-ended
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mu.Unlock()
}

func (p *proxy) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !p.wait() || err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
