package event_test

import (
	"testing"

	"muster.dev/muster/pkg/message/event"
)

// TestASubjectNamesItsWorkload: a reader tells by the subject whether a message concerns it.
func TestASubjectNamesItsWorkload(t *testing.T) {
	t.Parallel()
	id := event.WorkloadID("source", "name")
	for name, subject := range map[string]string{
		"event": event.EventsSubject("a-queue", id),
		"gang":  event.GangSubject("a-cluster", id),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := event.SubjectWorkload(subject); got != id {
				t.Errorf("%s is of workload %q, want %q", subject, got, id)
			}
		})
	}
}
