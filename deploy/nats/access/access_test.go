package access_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
)

const patience = 10 * time.Second

// witness is a user, and its password, who sees all that passes in the account of the
// streams.
const witness = "witness"

// start runs a server with the given users and returns its URL and the
// directory of the seeds.
func start(t *testing.T, users []access.User, more ...string) (url, dir string) {
	t.Helper()
	dir = t.TempDir()
	var names []string
	for _, user := range users {
		names = append(names, user.Name)
	}
	public, err := keys.Ensure(dir, names)
	if err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	config.WriteString(strings.ReplaceAll(strings.Join(more, "\n"), "DIR", dir))
	fmt.Fprintf(&config, "jetstream { store_dir: %q, max_file_store: 8GB }\n", t.TempDir())
	if err := access.WriteConfig(&config, users, public); err != nil {
		t.Fatal(err)
	}
	// A witness in the account of the streams reads everything.
	text := strings.Replace(config.String(), "users: [", fmt.Sprintf("users: [\n      { user: %q, password: %q }", witness, witness), 1)
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v in\n%s", err, config.String())
	}
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", -1, true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server takes no connections")
	}
	return s.ClientURL(), dir
}

func connect(t *testing.T, url, credentials string, certificates ...bus.TLS) (*bus.Bus, error) {
	t.Helper()
	o := bus.Options{URL: url, Name: "test", Logger: zap.NewNop(), CredentialsFile: credentials, ConnectTimeout: time.Second}
	if len(certificates) > 0 {
		o.TLS = certificates[0]
	}
	b, err := bus.Connect(t.Context(), o)
	if err == nil {
		t.Cleanup(b.Close)
	}
	return b, err
}

func TestAConnectionNeedsAKey(t *testing.T) {
	t.Parallel()
	users := access.Users("here")
	url, _ := start(t, users)
	if _, err := connect(t, url, ""); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without credentials: %v, want a refusal", err)
	}
	stranger := t.TempDir()
	if _, err := keys.Ensure(stranger, []string{"stranger"}); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, url, keys.File(stranger, "stranger")); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("with the key of a stranger: %v, want a refusal", err)
	}
}

func tenant(t *testing.T, name string, queues ...string) access.User {
	t.Helper()
	user, err := access.Tenant(name, queues...)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func checker(t *testing.T, check string) access.User {
	t.Helper()
	user, err := access.Checker(check)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func memberIntake(t *testing.T, cluster string, queues ...string) access.User {
	t.Helper()
	user, err := access.NewMemberIntake(cluster, queues...)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// What each user may do with each subject: w writes, r reads; everything that is
// not in the table is tried and must be refused.
func TestEachUserHasItsRightsAndNoOthers(t *testing.T) {
	t.Parallel()
	subjects := map[string]map[string]string{
		event.SubmitSubject("q"):                      {"operator": "w", "tenant-a": "w"},
		event.SubmitSubject("theirs"):                 {"operator": "w", "tenant-b": "w"},
		event.EventsSubject("theirs", "id"):           {"operator": "r", "intake": "w", "queue-manager": "w", "tenant-b": "r"},
		event.WorkloadSubject("q"):                    {"operator": "w", "intake": "w", "queue-manager": "w"},
		query.HomeSubject("there", "q"):               {"queue-manager": "r", "intake": "w", "intake-there": "w"},
		query.HomeSubject("there", "theirs"):          {"queue-manager": "r", "intake": "w"},
		query.HomeSubject("here", "q"):                {"queue-manager": "r", "intake": "w"},
		query.CarrySubject("here"):                    {"queue-manager": "r", "dispatcher-here": "w"},
		query.CarriedWantedSubject("here"):            {"queue-manager": "w", "dispatcher-here": "r"},
		query.CarriedSubject("here", "asker", "1"):    {"queue-manager": "r", "dispatcher-here": "w"},
		query.CarriedSubject("there", "asker", "1"):   {"queue-manager": "r", "dispatcher-there": "w"},
		event.EventsSubject("q", "id"):                {"operator": "r", "intake": "w", "queue-manager": "w", "tenant-a": "r"},
		event.NodeSubject("here", "n"):                {"operator": "r", "capacity-watcher-here": "w"},
		event.NodeSubject("there", "n"):               {"operator": "r", "capacity-watcher-there": "w"},
		event.DispatchSubject("here", "id"):           {"operator": "r", "queue-manager": "w"},
		event.StatusSubject("here", "id"):             {"operator": "r", "dispatcher-here": "w"},
		event.StatusSubject("there", "id"):            {"operator": "r", "dispatcher-there": "w"},
		query.WorkloadsSubject:                        {"operator": "w", "queue-manager": "r", "intake": "w"},
		query.TruthSubject("here"):                    {"queue-manager": "r", "dispatcher-here": "w"},
		query.TruthSubject("there"):                   {"queue-manager": "r", "dispatcher-there": "w"},
		query.ConfigureSubject:                        {"operator": "w", "queue-manager": "r"},
		query.ClusterConfigureSubject("here"):         {"intake": "w", "queue-manager": "r"},
		query.AppliedSubject:                          {"operator": "w", "intake": "w", "queue-manager": "r"},
		query.ExplainSubject:                          {"operator": "w", "intake": "w", "queue-manager": "r"},
		event.SubmitSubjectAs("q", "operator"):        {"operator": "w"},
		event.SubmitSubjectAs("q", "another"):         {},
		event.SubmitSubjectAs("q", "tenant-a"):        {"tenant-a": "w"},
		event.SubmitSubjectAs("theirs", "tenant-a"):   {},
		query.StraysSubject:                           {"operator": "w", "queue-manager": "r", "dispatcher-here": "w", "dispatcher-there": "w"},
		query.NodesSubject:                            {"operator": "w", "intake": "w", "queue-manager": "r"},
		query.StatusSubject:                           {"operator": "w", "intake": "w", "queue-manager": "r"},
		query.WhatIfSubject:                           {"operator": "w", "intake": "w", "queue-manager": "r"},
		query.ActivitySubject:                         {"operator": "w", "intake": "w", "queue-manager": "r"},
		query.DecisionsSubject:                        {"operator": "w", "intake": "w", "queue-manager": "r"},
		query.ManifestSubject:                         {"operator": "w", "intake": "w", "queue-manager": "r"},
		query.UsageSubject:                            {"operator": "w", "intake": "w", "queue-manager": "r"},
		event.DemandSubject:                           {"operator": "r", "queue-manager": "w"},
		query.DemandSubject:                           {"operator": "w", "intake": "w", "queue-manager": "r"},
		query.HoldSubject:                             {"intake": "w", "queue-manager": "r"},
		"$JS.API.INFO":                                {"operator": "w", "queue-manager": "w"},
		"$JS.API.STREAM.DELETE." + bus.SubmitStream:   {"queue-manager": "w"},
		"$JS.API.CONSUMER.LIST." + bus.SubmitStream:   {"operator": "w"},
		"$JS.API.STREAM.PURGE." + bus.DispatchStream:  {"queue-manager": "w"},
		"$JS.API.STREAM.PURGE." + bus.SubmitStream:    {"intake": "w", "queue-manager": "w"},
		"$JS.API.STREAM.MSG.GET." + bus.SubmitStream:  {"intake": "w"},
		"$JS.API.STREAM.UPDATE." + bus.DispatchStream: {"queue-manager": "w"},
		"muster.dead.submit.q":                        {"operator": "r", "queue-manager": "w", "intake": "w"},
		"muster.dead.workload.q":                      {"operator": "r", "queue-manager": "w"},
		"$JS.API.DIRECT.GET." + bus.StatusStream + "." + event.StatusSubject("here", "id"): {"dispatcher-here": "w", "queue-manager": "w"},
		"$JS.API.DIRECT.GET." + bus.CapacityStream + "." + event.NodeSubject("here", "n"):  {"capacity-watcher-here": "w", "queue-manager": "w"},
		"$JS.API.DIRECT.GET." + bus.DispatchStream + "." + event.PermissionSubject("here"): {"queue-manager": "w"},
		"$JS.API.CONSUMER.MSG.NEXT." + bus.SubmitStream + "." + bus.IntakeDurable:          {"intake": "w"},
		"$JS.API.CONSUMER.DELETE." + bus.SubmitStream + "." + bus.IntakeDurable:            {"intake": "w"},
		"$JS.API.CONSUMER.DELETE." + bus.SubmitStream + ".intake-q":                        {"intake": "w"},
		"$JS.API.CONSUMER.DELETE." + bus.WorkloadStream + ".queue-manager-q":               {"queue-manager": "w"},
		"$JS.API.CONSUMER.MSG.NEXT." + bus.WorkloadStream + "." + bus.QueueManagerDurable:  {"queue-manager": "w"},
		"$JS.ACK." + bus.SubmitStream + "." + bus.IntakeDurable + ".1.1.1.1.1":             {"intake": "w"},
		"$JS.API.CONSUMER.CREATE." + bus.DispatchStream + ".x." + event.DispatchFilter("here"): {
			"operator": "w", "dispatcher-here": "w", "queue-manager": "w"},
		event.CheckSubject("budget", "id"):  {"operator": "r", "queue-manager": "w", "checker-budget": "r"},
		event.CheckSubject("licence", "id"): {"operator": "r", "queue-manager": "w", "checker-licence": "r"},
		event.CheckedSubject("budget"):      {"operator": "r", "checker-budget": "w"},
		event.CheckedSubject("licence"):     {"operator": "r", "checker-licence": "w"},
		"muster.dead.checked.budget":        {"operator": "r", "queue-manager": "w"},
		"$JS.API.CONSUMER.CREATE." + bus.DispatchStream + ".x." + event.CheckFilter("budget"): {
			"operator": "w", "queue-manager": "w", "checker-budget": "w"},
		"$JS.API.CONSUMER.CREATE." + bus.CheckedStream + ".x." + event.CheckedSubject("budget"): {"queue-manager": "w"},
		"$JS.API.STREAM.LEADER.STEPDOWN." + bus.EventsStream:                                    {"queue-manager": "w"},
		"$JS.API.STREAM.LEADER.STEPDOWN." + bus.StatusStream:                                    {},
		"$JS.API.STREAM.PURGE." + bus.CheckedStream:                                             {"queue-manager": "w"},
		"muster.kept.q": {},
		"$JS.API.CONSUMER.CREATE." + bus.KeptStream + ".x." + event.KeptFilter():              {"queue-manager": "w"},
		"$JS.API.CONSUMER.CREATE." + bus.DispatchStream + ".x":                                {},
		"$JS.API.CONSUMER.CREATE." + bus.EventsStream + ".x." + event.EventsSubject("q", "*"): {"operator": "w", "intake": "w", "queue-manager": "w", "intake-there": "w"},
		"$JS.API.DIRECT.GET." + bus.EventsStream:                                              {"queue-manager": "w"},
		"$JS.API.STREAM.MSG.GET." + bus.KeptStream:                                            {"queue-manager": "w"},
		bus.LastEventSubject("q", "id"):                                                       {"operator": "w", "queue-manager": "w", "tenant-a": "w"},
		bus.LastEventSubject("theirs", "id"):                                                  {"operator": "w", "queue-manager": "w", "tenant-b": "w"},
		"muster.events.>":                                                                     {},
		"$SYS.REQ.SERVER.PING":                                                                {},
		"any.other":                                                                           {},
	}
	users := append(access.Users("here", "there"), tenant(t, "a", "q"), tenant(t, "b", "theirs"), checker(t, "budget"), checker(t, "licence"), memberIntake(t, "there", "q"))
	url, dir := start(t, users)
	var names []string
	for _, user := range users {
		names = append(names, user.Name)
	}
	public, err := keys.Ensure(dir, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range users {
		t.Run(user.Name, func(t *testing.T) {
			t.Parallel()
			probe := newProbe(t, url, keys.File(dir, user.Name))
			for subject, rights := range subjects {
				t.Run(subject, func(t *testing.T) {
					if got, want := probe.publishes(subject), rights[user.Name] == "w"; got != want {
						t.Errorf("publish on %s: allowed %v, want %v", subject, got, want)
					}
					if got, want := probe.subscribes(subject), rights[user.Name] == "r"; got != want {
						t.Errorf("subscribe to %s: allowed %v, want %v", subject, got, want)
					}
				})
			}
			for _, other := range users {
				inbox := bus.InboxPrefix(public[other.Name]) + ".>"
				if got, want := probe.subscribes(inbox), other.Name == user.Name; got != want {
					t.Errorf("read the replies to %s: allowed %v, want %v", other.Name, got, want)
				}
			}
		})
	}
}

// probe tries one thing after another, each on a connection of its own: the
// server's complaint comes before its answer to the flush, and the client
// remembers the last one only.
type probe struct {
	t   *testing.T
	url string
	key nats.Option
}

func newProbe(t *testing.T, url, seed string) *probe {
	t.Helper()
	key, err := nats.NkeyOptionFromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	return &probe{t: t, url: url, key: key}
}

func (p *probe) publishes(subject string) bool {
	return p.allowed(func(nc *nats.Conn) error { return nc.Publish(subject, nil) })
}

func (p *probe) subscribes(subject string) bool {
	return p.allowed(func(nc *nats.Conn) error {
		_, err := nc.SubscribeSync(subject)
		return err
	})
}

func (p *probe) allowed(try func(*nats.Conn) error) bool {
	p.t.Helper()
	nc, err := nats.Connect(p.url, p.key, nats.Timeout(patience), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		p.t.Fatal(err)
	}
	defer nc.Close()
	if err := try(nc); err != nil {
		p.t.Fatal(err)
	}
	if err := nc.FlushTimeout(patience); err != nil {
		p.t.Fatal(err)
	}
	return !errors.Is(nc.LastError(), nats.ErrPermissionViolation)
}
