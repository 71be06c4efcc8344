package bus

import (
	"testing"

	"muster.dev/muster/pkg/message/event"
)

// TestAnEndedSubscriptionIsForgottenSoon: services that begin again and again do not use up the
// consumers that the server allows a stream.
func TestAnEndedSubscriptionIsForgottenSoon(t *testing.T) {
	t.Parallel()
	b := connectInside(t)
	if _, err := b.Follow(t.Context(), StatusStream, event.StatusFilter()); err != nil {
		t.Fatal(err)
	}
	stream, err := b.js.Stream(t.Context(), StatusStream)
	if err != nil {
		t.Fatal(err)
	}
	consumers, found := stream.ListConsumers(t.Context()), 0
	for consumer := range consumers.Info() {
		found++
		if kept := consumer.Config.InactiveThreshold; kept != followedFor {
			t.Errorf("consumer %s stays for %s, want %s", consumer.Name, kept, followedFor)
		}
	}
	if err := consumers.Err(); err != nil || found != 1 {
		t.Errorf("there are %d consumers, %v; want that of the subscription", found, err)
	}
}
