package local

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
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
	// swallows: a client that sends something long is cut off before the answer comes.
	swallows bool
	closed   bool
	late     time.Duration // each answer
	open     map[net.Conn]struct{}
	pairs    map[*pair]struct{}
}

// pair is a connection with its two ends.
type pair struct {
	client, server net.Conn
	half           bool // the far end is gone, and the near one is not told; under the proxy's lock
}

// halfClose ends what is open at the far end only. New connections pass.
func (p *proxy) halfClose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for each := range p.pairs {
		each.half = true
		_ = each.server.Close()
	}
}

// sever ends what is open, at both ends. New connections pass.
func (p *proxy) sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

// delay makes each answer late.
func (p *proxy) delay(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = by
}

// lateness waits for as long as an answer is late; it passes then.
func (p *proxy) lateness() bool {
	p.mu.Lock()
	late := p.late
	p.mu.Unlock()
	if late > 0 {
		time.Sleep(late) // the delay is the fault
	}
	return true
}

// newProxy forwards a free port of the loopback interface to the target.
func newProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen in front of %s: %w", target, err)
	}
	p := &proxy{listener: listener, target: target, open: map[net.Conn]struct{}{}, pairs: map[*pair]struct{}{}}
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

// long is more than a statement that reads or a beat: a transaction with its rows.
const long = 1 << 10

// swallow begins or ends to lose the answers to what is long.
func (p *proxy) swallow(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallows = on
}

func (p *proxy) swallowing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.swallows
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
	both := &pair{client: client, server: server}
	p.open[client], p.open[server], p.pairs[both] = struct{}{}, struct{}{}, struct{}{}
	p.mu.Unlock()
	ended := make(chan struct{}, 2)
	var doomed atomic.Bool
	go func() { p.copy(server, client, func(n int) bool { return p.asked(&doomed, n) }); ended <- struct{}{} }()
	go func() {
		p.copy(client, server, func(int) bool { return !doomed.Load() && p.lateness() })
		ended <- struct{}{}
	}()
	<-ended
	p.mu.Lock()
	half := both.half
	delete(p.pairs, both)
	p.mu.Unlock()
	if half { // what the client sends goes nowhere, until it gives up
		_, _ = io.Copy(io.Discard, client)
	}
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mu.Unlock()
}

// asked notes that the answer to what a client sends is to be lost. What is sent
// arrives all the same.
func (p *proxy) asked(doomed *atomic.Bool, bytes int) bool {
	if bytes >= long && p.swallowing() {
		doomed.Store(true)
	}
	return true
}

// copy hands on what is read as long as pass says so.
func (p *proxy) copy(to io.Writer, from io.Reader, pass func(bytes int) bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !p.wait() || err != nil || !pass(n) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
