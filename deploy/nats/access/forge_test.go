package access_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
)

// quiet is how long nothing has to come before nothing is taken to come.
const quiet = 400 * time.Millisecond

// targets are subjects on which messages mean something; who may publish there is in
// their rights.
func targets(queueManagersInbox string) []string {
	return []string{
		query.ConfigureSubject, query.ClusterConfigureSubject("here"), event.WorkloadSubject("q"), query.HomeSubject("here", "q"), query.HomeSubject("there", "theirs"),
		event.SubmitSubject("q"), event.SubmitSubject("theirs"), event.SubmitSubjectAs("q", "tenant-a"), event.SubmitSubjectAs("theirs", "tenant-b"), event.SubmitSubjectAs("q", "operator"),
		event.DispatchSubject("here", "id"), event.DispatchSubject("there", "id"), event.StatusSubject("here", "id"), event.StatusSubject("there", "id"),
		event.NodeSubject("here", "n"), event.NodeSubject("there", "n"), event.SyncedSubject("there"), event.GangSubject("here", "id"),
		event.CheckSubject("budget", "id"), event.CheckSubject("licence", "id"), event.CheckedSubject("budget"), event.CheckedSubject("licence"),
		event.EventsSubject("q", "id"), event.EventsSubject("theirs", "id"), "muster.dead.workload.q",
		bus.GuardSubject + "STREAM.CREATE." + bus.DeadStream, "$JS.API.STREAM.DELETE." + bus.DeadStream, "$JS.API.STREAM.PURGE." + bus.SubmitStream,
		"$JS.ACK." + bus.SubmitStream + ".intake-q.1.1.1.1.1", "_INBOX.another", queueManagersInbox + ".x", "any.thing",
	}
}

// Each key is taken by a thief who tries everything that makes the server, or
// queue-manager, publish where the key has no right to: other subjects, answers to
// subjects of others, consumers that deliver there, streams that republish or copy.
func TestAStolenKeyForgesNothing(t *testing.T) {
	t.Parallel()
	users := append(access.Users("here", "there"), tenant(t, "a", "q"), tenant(t, "b", "theirs"), checker(t, "budget"), memberIntake(t, "there", "q"))
	url, dir := start(t, users)
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
	for _, subject := range append(query.Subjects(), query.ConfigureSubject) {
		// An answer with what was asked: the worst of all that queue-manager could say.
		if _, err := manager.Conn().Subscribe(subject, func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
			t.Fatal(err)
		}
	}
	public, err := keys.Ensure(dir, []string{access.QueueManager})
	if err != nil {
		t.Fatal(err)
	}
	inbox := bus.InboxPrefix(public[access.QueueManager])
	watcher, err := nats.Connect(url, nats.UserInfo(witness, witness))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Close)
	// A subscription for each: what a consumer delivers bears the subject under which
	// it was stored.
	seen := make(chan received, 1<<16)
	for _, target := range targets(inbox) {
		if _, err := watcher.Subscribe(target, func(m *nats.Msg) { seen <- received{target, m} }); err != nil {
			t.Fatal(err)
		}
	}
	if err := watcher.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	before := configurations(t, watcher)
	for _, user := range users { // one after another: what comes then is this one's
		if user.Name == access.QueueManager {
			continue
		}
		var others []string
		for _, target := range targets(inbox) {
			if !slices.ContainsFunc(user.Publish, func(right string) bool {
				return matches(right, target) || matches(strings.Replace(right, "$JS.API.", bus.GuardSubject, 1), target)
			}) {
				others = append(others, target)
			}
		}
		thief := &thief{t: t, user: user, url: url, seed: keys.File(dir, user.Name)}
		thief.steal(others)
		for over := false; !over; {
			select {
			case m := <-seen:
				if slices.Contains(others, m.target) {
					t.Errorf("%s has published on %s: %q of %s", user.Name, m.target, m.Data, m.Subject)
				}
			case <-time.After(quiet):
				over = true
			}
		}
		if thief.tried < len(others)*5 {
			t.Errorf("%s tried %d things against %d subjects: that is not everything", user.Name, thief.tried, len(others))
		}
	}
	if after := configurations(t, watcher); after != before {
		t.Errorf("streams are not as they were:\n%s\nwere\n%s", after, before)
	}
}

// configurations are those of all streams, and of the consumers that deliver by
// themselves, of which there must be none.
func configurations(t *testing.T, nc *nats.Conn) string {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	streams := js.ListStreams(t.Context())
	for info := range streams.Info() {
		config, err := json.Marshal(info.Config)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s\n", config)
		stream, err := js.Stream(t.Context(), info.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		consumers := stream.ListConsumers(t.Context())
		for consumer := range consumers.Info() {
			if consumer.Config.DeliverSubject != "" {
				fmt.Fprintf(&text, "consumer %s delivers to %s\n", consumer.Name, consumer.Config.DeliverSubject)
			}
		}
	}
	if err := streams.Err(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// matches reports whether a right covers a subject.
func matches(right, subject string) bool {
	r, s := strings.Split(right, "."), strings.Split(subject, ".")
	for i := range r {
		if r[i] == ">" {
			return len(s) > i
		}
		if i >= len(s) || r[i] != "*" && r[i] != s[i] {
			return false
		}
	}
	return len(r) == len(s)
}

// received is a message that came on a target.
type received struct {
	target string
	*nats.Msg
}

type thief struct {
	t         *testing.T
	user      access.User
	url, seed string
	nc        *nats.Conn
	tried     int
}

// literal makes a subject of a right: what stands for a wildcard is harmless.
func literal(right string) string {
	return strings.NewReplacer("*", "id", ">", "id").Replace(right)
}

func (th *thief) steal(targets []string) {
	t := th.t
	t.Helper()
	key, err := nats.NkeyOptionFromSeed(th.seed)
	if err != nil {
		t.Fatal(err)
	}
	// A message to the server's answer is refused by ending the connection.
	th.nc, err = nats.Connect(th.url, key, nats.Timeout(patience), nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer th.nc.Close()
	// Contents that the thief may write, for whatever copies them.
	for _, right := range th.user.Publish {
		if !strings.HasPrefix(right, "$JS.") {
			th.publish(literal(right), "", "forged")
		}
	}
	for _, target := range targets {
		th.publish(target, "", "forged")
		for _, right := range th.user.Publish {
			body := "forged"
			if strings.HasPrefix(right, "$JS.API.CONSUMER.MSG.NEXT.") {
				body = `{"batch":10,"no_wait":true}`
			}
			th.publish(literal(right), target, body)
		}
		th.consumers(target)
		th.streams(target)
	}
	th.flush()
}

func (th *thief) publish(subject, reply, body string) {
	th.tried++
	if err := th.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte(body)}); err != nil {
		th.t.Fatal(err)
	}
}

func (th *thief) flush() {
	if err := th.nc.FlushTimeout(patience); err != nil && !errors.Is(err, nats.ErrConnectionReconnecting) {
		th.t.Log(th.user.Name, err) // it was put out
	}
}

// consumers asks for some that deliver to the target, and for one that is read with
// answers to the target.
func (th *thief) consumers(target string) {
	for _, right := range th.user.Publish {
		rest, creates := strings.CutPrefix(right, "$JS.API.CONSUMER.CREATE.")
		if !creates {
			continue
		}
		parts := strings.SplitN(rest, ".", 3)
		stream, filter := parts[0], parts[2]
		name := fmt.Sprintf("%s-%d", th.user.Name, th.tried)
		create := fmt.Sprintf("$JS.API.CONSUMER.CREATE.%s.%s.%s", stream, name, filter)
		config := fmt.Sprintf(`"name":%q,"filter_subject":%q,"ack_policy":"none","deliver_policy":"all"`, name, filter)
		for _, body := range []string{
			fmt.Sprintf(`{"stream_name":%q,"config":{%s,"deliver_subject":%q}}`, stream, config, target),
			fmt.Sprintf(`{"stream_name":%q,"config":{%s,"Deliver_Subject":%q}}`, stream, config, target),
			fmt.Sprintf(`{"stream_name":%q,"config":{%s,"deliver_subject":%q},"config":{%s}}`, stream, config, target, config),
			fmt.Sprintf(`{"stream_name":%q,"Config":{%s,"deliver_subject":%q}}`, stream, config, target),
		} {
			th.publish(create, target, body)
			th.publish("$JS.API.CONSUMER.CREATE."+stream, target, body)
			th.publish("$JS.API.CONSUMER.DURABLE.CREATE."+stream+"."+name, target, body)
			th.publish(bus.GuardSubject+"CONSUMER.CREATE."+stream+"."+name+"."+filter, target, body)
		}
		name += "pull"
		th.publish(fmt.Sprintf("$JS.API.CONSUMER.CREATE.%s.%s.%s", stream, name, filter), "",
			fmt.Sprintf(`{"stream_name":%q,"config":{"name":%q,"filter_subject":%q,"ack_policy":"none","deliver_policy":"all"}}`, stream, name, filter))
		th.flush()
		th.publish("$JS.API.CONSUMER.MSG.NEXT."+stream+"."+name, target, `{"batch":10}`)
	}
}

// streams asks for some that copy, republish or take what goes to others.
func (th *thief) streams(target string) {
	for _, name := range append(bus.Streams(), "THIEF") {
		for _, body := range []string{
			fmt.Sprintf(`{"name":%q,"subjects":["thief.>"],"republish":{"src":">","dest":%q}}`, name, target),
			fmt.Sprintf(`{"name":%q,"mirror":{"name":%q}}`, name, bus.SubmitStream),
			fmt.Sprintf(`{"name":%q,"subjects":["thief.>"],"sources":[{"name":%q}]}`, name, bus.DispatchStream),
		} {
			for _, request := range []string{"STREAM.CREATE.", "STREAM.UPDATE.", "STREAM.RESTORE."} {
				th.publish("$JS.API."+request+name, target, body)
			}
		}
		for _, request := range []string{"STREAM.MSG.GET.", "DIRECT.GET.", "STREAM.SNAPSHOT.", "STREAM.PURGE.", "STREAM.DELETE.", "STREAM.MSG.DELETE."} {
			th.publish("$JS.API."+request+name, target, `{"seq":1}`)
		}
	}
}
