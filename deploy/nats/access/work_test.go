package access_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Each service does its work from its own account: what passes between accounts is
// enough for all ways in which the services read and write.
func TestServicesWorkFromTheirAccounts(t *testing.T) {
	t.Parallel()
	url, dir := start(t, append(access.Users("here", "there"), tenant(t, "a", "q")))
	as := func(user string) *bus.Bus {
		t.Helper()
		b, err := connect(t, url, keys.File(dir, user))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	manager := as(access.QueueManager)
	must(manager.GuardJetStream(ctx))
	must(query.HandleTruth(ctx, manager.Conn(), func(context.Context, query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		return query.WorkloadsAnswer{}, nil
	}))
	intake, dispatcher, watcher, operator := as(access.Intake), as(access.Dispatcher("here")), as(access.CapacityWatcher("here")), as(access.Operator)
	must(intake.EnsureStreams(ctx)) // the streams do not exist yet: queue-manager creates them on request
	must(dispatcher.EnsureStreams(ctx))

	// Work: a tenant submits, intake reads, settles and passes it on.
	ack, err := as("tenant-a").Conn().Request(event.SubmitSubjectAs("q", "tenant-a"), []byte("hello"), patience)
	if err != nil || !strings.Contains(string(ack.Data), bus.SubmitStream) {
		t.Fatalf("submit: %v, %v", ack, err)
	}
	submitted, err := intake.Work(ctx, bus.Work{Stream: bus.SubmitStream, Durable: bus.IntakeDurable})
	must(err)
	d := next(ctx, t, submitted)
	if string(d.Data) != "hello" || d.Subject != event.SubmitSubjectAs("q", "tenant-a") {
		t.Errorf("intake read %q on %s", d.Data, d.Subject)
	}
	const id = "0d1b9e4c-1f0e-5b7e-9a52-0c2f3f1f2a3b"
	changed := func() event.Envelope {
		e, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadChanged{
			Record: workload.Record{Workload: workload.Workload{ID: id, Queue: "q"}, Phase: workload.Queued},
		})
		must(err)
		return e
	}
	must(intake.Publish(ctx, event.WorkloadSubject("q"), changed()))
	d.Ack()

	// Follow: commands to the dispatcher, statuses back, and what each has said itself.
	commands, err := dispatcher.Follow(ctx, bus.DispatchStream, event.DispatchFilter("here"))
	must(err)
	must(manager.Publish(ctx, event.DispatchSubject("there", id), changed())) // not for it
	must(manager.Publish(ctx, event.DispatchSubject("here", id), changed()))
	if d := next(ctx, t, commands.C); d.Subject != event.DispatchSubject("here", id) {
		t.Errorf("the dispatcher read %s", d.Subject)
	}
	must(dispatcher.Publish(ctx, event.StatusSubject("here", id), changed()))
	own, err := dispatcher.LastValues(ctx, bus.StatusStream, event.ClusterStatusFilter("here"))
	if err != nil || len(own) != 1 {
		t.Errorf("the dispatcher has said %d things, %v; want 1", len(own), err)
	}
	must(watcher.Publish(ctx, event.NodeSubject("here", "n"), changed()))
	if seen, err := watcher.LastValues(ctx, bus.CapacityStream, event.CapacityFilter("here")); err != nil || len(seen) != 1 {
		t.Errorf("the watcher has seen %d things, %v; want 1", len(seen), err)
	}
	if last, err := watcher.LastMessage(ctx, bus.CapacityStream, event.NodeSubject("here", "n")); err != nil || last == nil {
		t.Errorf("the watcher's last word: %v, %v", last, err)
	}
	// What queue-manager reads of the streams that it follows: the last reports of a cluster, and
	// whether its dispatcher may keep gangs.
	must(manager.Publish(ctx, event.PermissionSubject("here"), changed()))
	for stream, subject := range map[string]string{
		bus.DispatchStream: event.PermissionSubject("here"),
		bus.CapacityStream: event.CapacityFilter("here"),
		bus.StatusStream:   event.ClusterStatusFilter("here"),
	} {
		if last, err := manager.LastMessage(ctx, stream, subject); err != nil || last == nil {
			t.Errorf("queue-manager reads of %s on %s: %v, %v", stream, subject, last, err)
		}
	}
	// Work of queue-manager itself, events to all, questions.
	work, err := manager.Work(ctx, bus.Work{Stream: bus.WorkloadStream, Durable: bus.QueueManagerDurable, TakeOver: true})
	must(err)
	next(ctx, t, work).Ack()
	must(manager.Publish(ctx, event.EventsSubject("q", id), changed()))
	history, err := operator.Replay(ctx, bus.EventsStream, event.EventsSubject("*", "*"))
	must(err)
	next(ctx, t, history.C)
	if _, err := query.NewClient(dispatcher.Conn()).Truth(ctx, "here", id); err != nil {
		t.Errorf("the dispatcher's question: %v", err)
	}
	soon, end := context.WithTimeout(ctx, time.Second)
	defer end()
	if _, err := dispatcher.Follow(soon, bus.DispatchStream, event.DispatchFilter("there")); err == nil {
		t.Error("the dispatcher follows another cluster's commands")
	}
}

func next(ctx context.Context, t *testing.T, from <-chan bus.Delivery) bus.Delivery {
	t.Helper()
	select {
	case d := <-from:
		return d
	case <-ctx.Done():
		t.Fatal("nothing came")
	}
	return bus.Delivery{}
}
