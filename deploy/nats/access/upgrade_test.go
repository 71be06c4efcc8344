package access_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
)

// inOneAccount writes users as versions before the accounts did: all in the account of
// the streams, with their rights alone.
func inOneAccount(t *testing.T, users []access.User, public map[string]string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("accounts {\n  MUSTER {\n    jetstream: enabled\n    users: [\n")
	for _, user := range users {
		fmt.Fprintf(&text, "      { nkey: %s, permissions: { publish: { allow: [%s] }, subscribe: { allow: [%s] }%s } }\n", public[user.Name],
			listed(user.Publish), listed(append([]string{bus.InboxPrefix(public[user.Name]) + ".>"}, user.Subscribe...)),
			map[bool]string{true: ", allow_responses: true"}[user.Answers])
	}
	text.WriteString("    ]\n  }\n}\n")
	return text.String()
}

func listed(subjects []string) string {
	return strings.ReplaceAll(fmt.Sprintf("%q", subjects)[1:len(fmt.Sprintf("%q", subjects))-1], `" "`, `", "`)
}

// TestAccountsAreUpgradedInOrder: first queue-manager, then accounts.conf and a restart
// of the server, as the changelog says. A service and a tenant that were connected go on
// over their own accounts, and nothing that was stored is lost.
func TestAccountsAreUpgradedInOrder(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	users := append(access.Users("here"), tenant(t, "a", "q"))
	dir := t.TempDir()
	var names []string
	for _, user := range users {
		names = append(names, user.Name)
	}
	public, err := keys.Ensure(dir, names)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "nats.conf")
	port := -1
	write := func(accounts string) {
		t.Helper()
		text := fmt.Sprintf("listen: \"127.0.0.1:%d\"\njetstream { store_dir: %q, max_file_store: 8GB }\n%s", port, filepath.Join(dir, "data"), accounts)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(inOneAccount(t, users, public))
	s := serve(t, file)
	port = s.Addr().(*net.TCPAddr).Port
	as := func(user string) *bus.Bus {
		t.Helper()
		b, err := connect(t, s.ClientURL(), keys.File(dir, user))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}

	// Before: intake makes the streams itself, and has a message that it has not settled.
	intake, own := as(access.Intake), as("tenant-a")
	if err := intake.EnsureStreams(ctx); err != nil {
		t.Fatal(err)
	}
	submitted, err := intake.Work(ctx, bus.Work{Stream: bus.SubmitStream, Durable: bus.IntakeDurable, AckWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	submit := func(what string) {
		t.Helper()
		ack, err := own.Conn().Request(event.SubmitSubjectAs("q", "tenant-a"), []byte(what), patience)
		if err != nil || !strings.Contains(string(ack.Data), bus.SubmitStream) {
			t.Fatalf("submit %s: %v, %v", what, ack, err)
		}
	}
	submit("before")
	if d := next(ctx, t, submitted); string(d.Data) != "before" {
		t.Fatalf("read %q", d.Data)
	}

	manager := as(access.QueueManager) // the new one
	if err := manager.GuardJetStream(ctx); err != nil {
		t.Fatal(err)
	}
	reconnected, done := own.Reconnected()
	defer done()
	var accounts strings.Builder
	if err := access.WriteConfig(&accounts, users, public); err != nil {
		t.Fatal(err)
	}
	write(accounts.String())
	if err := s.Reload(); err == nil {
		t.Error("the server takes another system account without a restart: the changelog need not ask for one")
	}
	s.Shutdown()
	s.WaitForShutdown()
	s = serve(t, file)
	select {
	case <-reconnected:
	case <-ctx.Done():
		t.Fatal("the tenant does not connect again")
	}
	submit("after")
	for got := map[string]bool{}; !got["before"] || !got["after"]; {
		d := next(ctx, t, submitted)
		d.Ack()
		got[string(d.Data)] = true
	}
	if _, err := intake.Subjects(ctx, bus.SubmitStream, ">"); err != nil {
		t.Errorf("intake looks at its stream: %v", err)
	}

	// From then on a reload is enough.
	users = append(users, tenant(t, "b", "theirs"))
	if public, err = keys.Ensure(dir, append(names, "tenant-b")); err != nil {
		t.Fatal(err)
	}
	accounts.Reset()
	if err := access.WriteConfig(&accounts, users, public); err != nil {
		t.Fatal(err)
	}
	write(accounts.String())
	if err := s.Reload(); err != nil {
		t.Fatalf("reload the server with another tenant: %v", err)
	}
	as("tenant-b")
	submit("with another tenant")
}

// serve runs a server of that file until the test ends.
func serve(t *testing.T, file string) *server.Server {
	t.Helper()
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.NoLog, options.NoSigs = true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server takes no connections")
	}
	return s
}
