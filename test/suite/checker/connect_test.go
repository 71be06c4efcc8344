package checker

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"muster.dev/muster/deploy/certificates"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/local/natsserver"
)

// TestConnect: the checker connects by itself to servers of each kind, and an error names
// the file that it cannot use.
func TestConnect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	public, err := keys.Ensure(dir, []string{"checker", "stranger"})
	if err != nil {
		t.Fatal(err)
	}
	if err := certificates.Ensure(dir, certificates.Wanted{Name: "nats", Hosts: []string{"127.0.0.1"}}, certificates.Wanted{Name: "client"}); err != nil {
		t.Fatal(err)
	}
	open := configured(t, "")
	withKey := configured(t, fmt.Sprintf("authorization { users: [{ nkey: %s }] }", public["checker"]))
	withTLS := configured(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }",
		certificates.Certificate(dir, "nats"), certificates.Key(dir, "nats"), certificates.CA(dir)))
	missing := filepath.Join(dir, "missing")
	for name, c := range map[string]struct {
		login Login
		want  string // part of the error; empty for none
	}{
		"nothing to show":           {login: Login{URL: open}},
		"an nkey":                   {login: Login{URL: withKey, Seed: keys.File(dir, "checker")}},
		"another one's nkey":        {login: Login{URL: withKey, Seed: keys.File(dir, "stranger")}, want: "Authorization Violation"},
		"an nkey that is not there": {login: Login{URL: open, Seed: missing}, want: missing},
		"TLS": {login: Login{URL: withTLS, CA: certificates.CA(dir),
			Certificate: certificates.Certificate(dir, "client"), Key: certificates.Key(dir, "client")}},
		"an authority that is not there":  {login: Login{URL: withTLS, CA: missing}, want: missing},
		"a certificate that is not there": {login: Login{URL: withTLS, CA: certificates.CA(dir), Certificate: missing, Key: missing}, want: missing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connects(t, c.login, c.want)
		})
	}
}

// TestConnectWaits: the checker tries again when a server ends its first connection, and
// reaches the one that starts after that.
func TestConnectWaits(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connected := make(chan struct{})
	go func() {
		defer close(connected)
		connects(t, Login{URL: "nats://" + listener.Addr().String()}, "")
	}()
	first, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	started, err := natsserver.Start(t.TempDir(), port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Stop)
	<-connected
}

// connects opens a connection and closes it, or wants an error with a text.
func connects(t *testing.T, l Login, want string) {
	t.Helper()
	conn, err := Connect(l)
	switch {
	case err == nil && want == "":
		if got := conn.Status(); got != nats.CONNECTED {
			t.Errorf("the connection is %s", got)
		}
	case err == nil || want == "" || !strings.Contains(err.Error(), want):
		t.Errorf("%+v: %v, want an error with %q", l, err, want)
	}
	if err == nil {
		conn.Close()
	}
}

// configured starts a server with a configuration, in the process of the test, and returns
// its URL.
func configured(t *testing.T, configuration string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", -1, true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server takes no connections")
	}
	return s.ClientURL()
}
