package access_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestACheckerReadsAndAnswersForItsCheck, what was asked before it came too, and for no other.
func TestACheckerReadsAndAnswersForItsCheck(t *testing.T) {
	t.Parallel()
	url, dir := start(t, append(access.Users("here"), checker(t, "budget")))
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
	ask := func(check string, id workload.ID) {
		t.Helper()
		envelope, err := event.New(event.NewID(), "test", time.Now(), &event.CheckWanted{Check: check, Workload: id, Number: 1, State: event.CheckOpen})
		if err != nil {
			t.Fatal(err)
		}
		if err := manager.Publish(t.Context(), event.CheckSubject(check, id), envelope); err != nil {
			t.Fatal(err)
		}
	}
	ask("budget", "early")
	ask("licence", "theirs")
	own, err := connect(t, url, keys.File(dir, "checker-budget"))
	if err != nil {
		t.Fatal(err)
	}
	following, err := own.Follow(t.Context(), bus.DispatchStream, event.CheckFilter("budget"))
	if err != nil {
		t.Fatal(err)
	}
	ask("budget", "late")
	for _, want := range []workload.ID{"early", "late"} {
		select {
		case d := <-following.C:
			var wanted event.CheckWanted
			if envelope, err := event.Parse(d.Data); err != nil || json.Unmarshal(envelope.Data, &wanted) != nil || wanted.Workload != want {
				t.Errorf("it reads %s, %v; want workload %s", d.Data, err, want)
			}
		case <-time.After(patience):
			t.Fatalf("it has not read about %s", want)
		}
	}
	ack, err := own.Conn().Request(event.CheckedSubject("budget"), []byte("{}"), patience)
	var stored struct {
		Stream string `json:"stream"`
	}
	if err != nil || json.Unmarshal(ack.Data, &stored) != nil || stored.Stream != bus.CheckedStream {
		t.Errorf("an answer is acknowledged by %v, %v; want %s", ack, err, bus.CheckedStream)
	}
	if _, err := own.Follow(t.Context(), bus.DispatchStream, event.CheckFilter("licence")); err == nil {
		t.Error("it follows what another check is asked")
	}
	if _, err := own.Follow(t.Context(), bus.DispatchStream, event.DispatchFilter("here")); err == nil {
		t.Error("it follows the commands of a cluster")
	}
}

func TestCheckersAreNamed(t *testing.T) {
	t.Parallel()
	for _, check := range []string{"", "*", "a.b", "a.>", "A", "a b"} {
		t.Run(fmt.Sprintf("%q", check), func(t *testing.T) {
			if user, err := access.Checker(check); err == nil {
				t.Errorf("a checker of %q became %v", check, user)
			}
		})
	}
}
