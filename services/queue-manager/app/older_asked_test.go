package app_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// emptied takes all messages of a stream away.
func (w *world) emptied(name string) {
	w.t.Helper()
	js, err := jetstream.New(w.bus.Conn())
	if err != nil {
		w.t.Fatal(err)
	}
	stream, err := js.Stream(w.ctx, name)
	if err == nil {
		err = stream.Purge(w.ctx)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestWhatWasAskedInTheLostTimeStaysAsked: holds, resumes, priorities and moves of the lost time
// are in effect again, whether NATS has the requests or only the events that showed them.
func TestWhatWasAskedInTheLostTimeStaysAsked(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world, ids ...workload.ID){
		"both are there":        func(*world, ...workload.ID) {},
		"the requests are gone": func(w *world, _ ...workload.ID) { w.emptied(bus.KeptStream) },
		"their events are gone": func(w *world, ids ...workload.ID) {
			for _, id := range ids {
				w.silenced(event.EventsSubject("research", id), event.EventsSubject("other", id))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}}, app.Queue{Name: "other", Namespaces: []string{"default"}})
			ask := func(payload event.Payload) { w.publish(event.WorkloadSubject("research"), payload) }
			var ids []workload.ID
			for _, name := range []string{"held", "resumed", "ranked", "moved"} {
				ids = append(ids, w.submit(gangOf(name, "research", 1)))
				w.waits(ids[len(ids)-1], workload.ReasonNoNodes)
			}
			held, resumed, ranked, moved := ids[0], ids[1], ids[2], ids[3]
			ask(&event.WorkloadHold{Workload: resumed, By: "ann@ops"})
			w.waits(resumed, workload.ReasonHeld)
			w.stop()
			older := w.copied("_older")
			w.start()

			// The time that will be lost.
			ask(&event.WorkloadHold{Workload: held, By: "ann@ops", Why: "new data"})
			ask(&event.WorkloadHold{Workload: resumed, Resume: true, By: "ann@ops"})
			ask(&event.WorkloadPriority{Workload: ranked, Priority: 500, By: "ann@ops"})
			ask(&event.WorkloadMove{Workload: moved, Queue: "other", By: "ann@ops"})
			asItWas := func([]query.Node) bool {
				h := w.recordOf(held).Hold
				return h != nil && h.By == "ann@ops" && h.Why == "new data" && w.recordOf(resumed).ID != "" && w.recordOf(resumed).Hold == nil &&
					w.recordOf(ranked).Priority == 500 && w.recordOf(moved).Queue == "other"
			}
			w.nodes("all is as asked", asItWas)
			w.waits(w.submit(gangOf("late", "research", 1)), workload.ReasonNoNodes) // of which the streams have something in any case
			w.stop()
			lose(w, ids...)

			w.config.DatabaseURL = older
			w.start()
			w.nodes("all is as asked before the database was restored", asItWas)
			if letters, err := w.bus.DeadLetters(w.ctx); err != nil || name == "both are there" && len(letters) > 0 {
				t.Errorf("dead letters %+v, %v", letters, err)
			}
			w.checkReplay()
		})
	}
}

// TestWhatCannotBeAskedAgainIsNamed: a request of the lost time that is gone, and that the
// workload as it is now does not allow, is named to the operator.
func TestWhatCannotBeAskedAgainIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}}, app.Queue{Name: "other", Namespaces: []string{"default"}})
	id := w.submit(gangOf("moved", "research", 1))
	w.waits(id, workload.ReasonNoNodes)
	w.stop()
	older := w.copied("_older")
	w.start()
	w.publish(event.WorkloadSubject("research"), &event.WorkloadMove{Workload: id, Queue: "other", By: "ann@ops"})
	w.nodes("it is moved", func([]query.Node) bool { return w.queueOf(id) == "other" })
	w.stop()
	w.emptied(bus.KeptStream)

	w.config.DatabaseURL, w.config.Queues = older, []app.Queue{{Name: "research", Namespaces: []string{"default"}}}
	if err := w.config.Validate(); err != nil {
		t.Fatal(err)
	}
	w.start()
	var letters []bus.DeadLetter
	w.nodes("a dead letter names it", func([]query.Node) bool {
		letters, _ = w.bus.DeadLetters(w.ctx)
		return len(letters) > 0
	})
	for _, want := range []string{`was moved to queue "other", which is lost`, "request it again"} {
		if len(letters) != 1 || !strings.Contains(letters[0].Reason, want) {
			t.Errorf("the operator finds %+v, want %q", letters, want)
		}
	}
	if got := w.queueOf(id); got != "research" {
		t.Errorf("it waits in queue %q", got)
	}
}
