package submission_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/internal/client/manifest"
	"muster.dev/muster/services/internal/client/submission"
)

func connect(t *testing.T) *bus.Bus {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func one(t *testing.T, content string, o submission.Options) submission.Submission {
	t.Helper()
	s, err := submission.New(manifest.Split([]byte(content))[0], o, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSend(t *testing.T) {
	t.Parallel()
	b := connect(t)
	if err := one(t, "kind: RayJob", submission.Options{}).Send(t.Context(), b, "q", ""); !errors.Is(err, bus.ErrNoStream) || !strings.Contains(err.Error(), "try again") {
		t.Errorf("without streams: %v, want ErrNoStream and to be told to try again", err)
	}
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := submission.Options{ID: "nightly", Source: "ci", Priority: 7}
	yaml, invalid := "kind: RayJob # as written\n", "kind: \xff"
	for _, content := range []string{yaml, yaml, `{"kind":"RayJob"}`, invalid} {
		// The second is the first again, and the others have the same id and other
		// content: all arrive, because queue-manager alone tells them apart.
		if err := one(t, content, o).Send(t.Context(), b, "q", ""); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	deliveries, err := b.Work(ctx, bus.Work{Stream: bus.SubmitStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	type seen struct{ ID, Source, Type, ContentType, Data, Base64 string }
	var got []seen
	for range 4 {
		d := <-deliveries
		e, err := event.Parse(d.Data)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(d.Data, []byte(`"priority":7`)) {
			t.Errorf("the priority is missing in %s", d.Data)
		}
		got = append(got, seen{e.ID, e.Source, e.Type, e.DataContentType, string(e.Data), string(e.DataBase64)})
		d.Ack()
	}
	want := []seen{
		{"nightly", "ci", event.SubmitType, "application/yaml", `"kind: RayJob # as written\n"`, ""},
		{"nightly", "ci", event.SubmitType, "application/yaml", `"kind: RayJob # as written\n"`, ""},
		{"nightly", "ci", event.SubmitType, "application/json", `{"kind":"RayJob"}`, ""},
		{"nightly", "ci", event.SubmitType, "application/yaml", "", invalid},
	}
	if len(deliveries) > 0 {
		t.Errorf("%d more submissions were stored than sent", len(deliveries))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what arrived (-want +got):\n%s", diff)
	}
}

// Another class under the same id has to arrive, to be refused.
func TestThePriorityClassIsContent(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, class := range []string{"", "low", "high"} {
		s := one(t, "kind: RayJob", submission.Options{ID: "a", Source: "ci", PriorityClass: class})
		if other, twice := seen[s.MessageID("q")]; twice {
			t.Errorf("the classes %q and %q have the same message id", class, other)
		}
		seen[s.MessageID("q")] = class
	}
}

func TestTooLargeForNATS(t *testing.T) {
	t.Parallel()
	b := connect(t)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	big := "kind: RayJob\nx: " + string(bytes.Repeat([]byte("x"), int(b.MaxEvent())))
	if err := one(t, big, submission.Options{}).Send(t.Context(), b, "q", ""); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("more than the server takes: %v, want ErrTooLarge", err)
	}
}

func TestIDNamesTheWorkload(t *testing.T) {
	t.Parallel()
	o := submission.Options{ID: "a", Source: "ci"}
	first, again := one(t, "kind: RayJob", o), one(t, "kind: RayCluster", o)
	fresh, other := one(t, "kind: RayJob", submission.Options{Source: "ci"}), one(t, "kind: RayJob", submission.Options{Source: "ci"})
	if first.Workload != again.Workload || first.Workload != event.WorkloadID("ci", "a") {
		t.Errorf("the same source and id gave %s and %s", first.Workload, again.Workload)
	}
	if fresh.Workload == other.Workload {
		t.Errorf("two submissions without an id are the same workload %s", fresh.Workload)
	}
}
