package access_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/deploy/certificates"
	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// A tenant's key is good for a submission and for its events, with the client
// that everybody has.
func TestATenantSubmitsAndReadsItsEvents(t *testing.T) {
	t.Parallel()
	url, dir := start(t, append(access.Users("here"), tenant(t, "a", "q")))
	manager, err := connect(t, url, keys.File(dir, access.QueueManager))
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := manager.GuardJetStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	own, err := connect(t, url, keys.File(dir, "tenant-a"))
	if err != nil {
		t.Fatal(err)
	}
	nc := own.Conn()
	ack, err := nc.Request(event.SubmitSubject("q"), []byte("{}"), patience)
	if err != nil || !strings.Contains(string(ack.Data), bus.SubmitStream) {
		t.Fatalf("submit: %v, %v; want JetStream's acknowledgement", ack, err)
	}
	events, err := nc.SubscribeSync(event.EventsSubject("q", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	const id = "0d1b9e4c-1f0e-5b7e-9a52-0c2f3f1f2a3b"
	payload := &event.WorkloadChanged{Record: workload.Record{Workload: workload.Workload{ID: id, Queue: "q"}, Phase: workload.Queued}}
	for _, queue := range []string{"q", "theirs"} {
		envelope, err := event.New(event.NewID(), "test", time.Now(), payload)
		if err != nil {
			t.Fatal(err)
		}
		if err := manager.Publish(t.Context(), event.EventsSubject(queue, id), envelope); err != nil {
			t.Fatal(err)
		}
	}
	heard, err := events.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	last, err := nc.Request(bus.LastEventSubject("q", id), nil, patience)
	if err != nil || string(last.Data) != string(heard.Data) {
		t.Errorf("last event: %v, %v; want what was heard, %s", last, err, heard.Data)
	}
	if _, err := nc.Request(bus.LastEventSubject("theirs", id), nil, time.Second); err == nil {
		t.Error("the last event of another queue's workload was answered")
	}
}

func TestTenantsAreNamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		queues []string
	}{{"a", nil}, {"A", []string{"q"}}, {"a.b", []string{"q"}}, {"a", []string{"*"}}, {"a", []string{"q", "x.>"}}, {"", []string{"q"}}} {
		t.Run(fmt.Sprintf("%q of %q", test.name, test.queues), func(t *testing.T) {
			if user, err := access.Tenant(test.name, test.queues...); err == nil {
				t.Errorf("tenant %q of %q became %v", test.name, test.queues, user)
			}
		})
	}
}

// A server that asks for certificates refuses every client without one of its authority,
// even with a valid key, and services refuse a server of another authority.
func TestOnlyCertifiedClientsConnect(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, place := range []string{dir, elsewhere} {
		if err := certificates.Ensure(place, certificates.Wanted{Name: "nats", Hosts: []string{"127.0.0.1"}},
			certificates.Wanted{Name: "client"}); err != nil {
			t.Fatal(err)
		}
	}
	url, seeds := start(t, access.Users("here"), access.TLS(certificates.Certificate(dir, "nats"), certificates.Key(dir, "nats"), certificates.CA(dir)))
	of := func(ca, own string) bus.TLS {
		return bus.TLS{CA: certificates.CA(ca), Certificate: certificates.Certificate(own, "client"), Key: certificates.Key(own, "client")}
	}
	seed := keys.File(seeds, access.Intake)
	b, err := connect(t, url, seed, of(dir, dir))
	if err != nil {
		t.Fatal(err)
	}
	if state, err := b.Conn().TLSConnectionState(); err != nil || len(state.VerifiedChains) == 0 {
		t.Errorf("the connection is not encrypted: %v, %v", state, err)
	}
	for what, files := range map[string]bus.TLS{
		"nothing":                    {},
		"no certificate":             {CA: certificates.CA(dir)},
		"another's certificate":      of(dir, elsewhere),
		"another authority's server": of(elsewhere, dir),
		"the system's authorities":   {Certificate: certificates.Certificate(dir, "client"), Key: certificates.Key(dir, "client")},
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := connect(t, url, seed, files); err == nil {
				t.Errorf("connected with %s", what)
			}
		})
	}
	if _, err := connect(t, url, "", of(dir, dir)); err == nil {
		t.Error("connected with a certificate but without a key of a user")
	}

	plain, plainSeeds := start(t, access.Users("here"))
	if _, err := connect(t, plain, keys.File(plainSeeds, access.Intake), of(dir, dir)); err == nil || !strings.Contains(err.Error(), nats.ErrSecureConnWanted.Error()) {
		t.Errorf("a server without encryption was taken: %v", err)
	}
}

// TestNamedTenantsShareNoIdentity: of two tenants of one queue each submits under its
// own name and no other, so that neither gets the id of what the other submits.
func TestNamedTenantsShareNoIdentity(t *testing.T) {
	t.Parallel()
	var users []access.User
	for _, name := range []string{"a", "b"} {
		user, err := access.NamedTenant(name, "q", "lab")
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, user)
	}
	url, dir := start(t, append(access.Users("here"), users...))
	for _, user := range users {
		probe := newProbe(t, url, keys.File(dir, user.Name))
		for _, queue := range []string{"q", "lab"} {
			t.Run(user.Name, func(t *testing.T) {
				for subject, want := range map[string]bool{
					event.SubmitSubject(queue): false, event.SubmitSubjectAs(queue, "tenant-a"): user.Name == "tenant-a", event.SubmitSubjectAs(queue, "tenant-b"): user.Name == "tenant-b",
				} {
					t.Run(subject, func(t *testing.T) {
						if got := probe.publishes(subject); got != want {
							t.Errorf("%s publishes on %s: %v, want %v", user.Name, subject, got, want)
						}
					})
				}
			})
		}
	}
	if event.SubmissionID("tenant-a", "s", "1") == event.SubmissionID("tenant-b", "s", "1") {
		t.Error("the same submission of two tenants has one id")
	}
}
