package app_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
)

// TestLostStreams: when NATS comes back without its data, what was reported is
// reported again, and nothing happens to the gang.
func TestLostStreams(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "lost", 1), newStep(t)
	w.run(d)
	gang := w.gang("lost-gang", "lost", workers{1})
	d.command(gang)
	w.await("pods run", func() bool { return len(w.running(gang.Workload)) == 2 })
	uid := w.object("RayCluster", "lost").GetUID()
	d = d.wipe()
	d.awaitCreated(gang.Workload)
	d.command(gang)
	if object := w.object("RayCluster", "lost"); object == nil || object.GetUID() != uid {
		t.Errorf("not the earlier object: %v", object)
	}
	d.absent(gang)
	d.awaitReleased(gang.Workload)
}

// TestLostStatuses: statuses that the stream loses while the connection stands are
// reported again, and a question is answered.
func TestLostStatuses(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "purged", 1), newStep(t)
	w.run(d)
	gang := w.gang("purged-gang", "purged", workers{1})
	d.command(gang)
	w.await("pods run", func() bool { return len(w.running(gang.Workload)) == 2 })
	d.awaitCreated(gang.Workload)
	js, err := jetstream.New(d.bus.Conn())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), bus.StatusStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.await("the status is there again", func() bool {
		last, err := d.bus.LastMessage(t.Context(), bus.StatusStream, event.StatusSubject(clusterName, gang.Workload))
		return err == nil && last != nil
	})
	question, err := event.New("question", "test", time.Now(), &event.ReportWanted{Cluster: clusterName, Workload: gang.Workload, Ask: "1/1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.bus.Notify(event.AskSubject(clusterName), question); err != nil {
		t.Fatal(err)
	}
	d.await(gang.Workload, "an answer", func(s event.GangStatus) bool { return s.Answers == "1/1" && s.Created })
}

// TestStaleCommand: a command of an attempt before, though it is the last in the
// stream, does not harm the object of a later attempt.
func TestStaleCommand(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "stale", 1), newStep(t)
	stop := w.run(d)
	gang := w.gang("stale-gang", "stale", workers{1})
	second := gang
	second.Attempt, second.Epoch = 2, 2
	d.command(second)
	d.awaitCreated(gang.Workload)
	uid := w.object("RayCluster", "stale").GetUID()
	d.command(gang)
	stop()
	w.run(d)
	other := w.gang("stale-other", "other", workers{1})
	d.command(other) // when it is there, the stale command has been looked at
	d.awaitCreated(other.Workload)
	if object := w.object("RayCluster", "stale"); object == nil || object.GetUID() != uid || object.GetDeletionTimestamp() != nil {
		t.Errorf("the object of the later attempt was touched: %v", object)
	}
}
