package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/net/dns/dnsmessage"

	"muster.dev/muster/test/suite"
)

// domain ends the names of servers.
const domain = ".muster.test"

// names is a DNS server for the services of an installation, which have a mount
// namespace of their own with a resolv.conf that leads to it.
type names struct {
	conn            net.PacketConn
	silent, refuses atomic.Bool
	files           map[string]string // what is mounted, by where
}

// namesHere returns why there can be no names on this machine; nil when there can.
func namesHere() error {
	if os.Geteuid() != 0 {
		return errors.New("only root mounts a resolv.conf for one process")
	}
	if output, err := exec.Command("unshare", "--mount", "--propagation", "private", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("make a mount namespace: %w: %s", err, output)
	}
	return nil
}

// startNames starts a DNS server, if servers are to have names and this machine can
// do that.
func (in *installation) startNames(context.Context) error {
	if !in.shape.Names || namesHere() != nil {
		return nil
	}
	// Port 53 is the only one that a resolv.conf can name; the address is one of many.
	var conn net.PacketConn
	var err error
	for last := 1; last < 250; last++ {
		if conn, err = net.ListenPacket("udp", fmt.Sprintf("127.0.53.%d:53", last)); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("listen for questions of names: %w", err)
	}
	n := &names{conn: conn, files: map[string]string{}}
	address, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	for to, content := range map[string]string{
		"/etc/resolv.conf":   "nameserver " + address + "\n",
		"/etc/hosts":         "127.0.0.1 localhost\n",
		"/etc/nsswitch.conf": "hosts: files dns\n",
	} {
		n.files[to] = filepath.Join(in.dir, filepath.Base(to))
		if err := os.WriteFile(n.files[to], []byte(content), 0o644); err != nil {
			return err
		}
	}
	in.names = n
	go n.serve()
	return nil
}

// serve answers until the connection is closed: all names are this machine.
func (n *names) serve() {
	buffer := make([]byte, 512)
	for {
		size, from, err := n.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if n.silent.Load() {
			continue
		}
		if answer, err := answerTo(buffer[:size], n.refuses.Load()); err == nil {
			_, _ = n.conn.WriteTo(answer, from) // who does not hear it asks again
		}
	}
}

func answerTo(question []byte, refuses bool) ([]byte, error) {
	var asked dnsmessage.Message
	if err := asked.Unpack(question); err != nil || len(asked.Questions) != 1 {
		return nil, fmt.Errorf("not one question: %w", err)
	}
	q := asked.Questions[0]
	answer := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: asked.ID, Response: true, Authoritative: true, RecursionDesired: asked.RecursionDesired, RecursionAvailable: true},
		Questions: asked.Questions,
	}
	switch {
	case refuses:
		answer.RCode, answer.Authoritative = dnsmessage.RCodeServerFailure, false
	case !strings.HasSuffix(q.Name.String(), domain+"."):
		answer.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	return answer.Pack()
}

// named is the address of a server that services get.
func (in *installation) named(server, address string) string {
	if in.names == nil {
		return address
	}
	_, port, _ := net.SplitHostPort(address)
	return server + domain + ":" + port
}

// inNamespace is a command that runs where names are asked of the DNS server.
func (in *installation) inNamespace(binary string, arguments []string) (string, []string) {
	if in.names == nil {
		return binary, arguments
	}
	var mounts []string
	for to, file := range in.names.files {
		mounts = append(mounts, fmt.Sprintf("mount --bind '%s' '%s'", file, to))
	}
	script := strings.Join(mounts, " && ") + ` && exec "$@"`
	return "unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", binary}, arguments...)
}

// breakNames has the DNS server answer nothing, or that it has failed, and ends what is
// open, so that all services have to ask.
func (in *installation) breakNames(fault suite.Fault) (func(context.Context) error, error) {
	if in.names == nil {
		return nil, fmt.Errorf("%w: DNS %s: %w", suite.ErrNotHere, fault, errors.Join(errors.New("servers have no names"), namesHere()))
	}
	broken := &in.names.silent
	if fault == suite.ServFail {
		broken = &in.names.refuses
	}
	broken.Store(true)
	for _, service := range suite.Services() {
		for _, p := range slices.Concat(in.toNATS[service], []*proxy{in.toPostgres[service], in.toAPI[service]}) {
			if p != nil {
				p.sever()
			}
		}
	}
	return func(context.Context) error { broken.Store(false); return nil }, nil
}
