package kubecontroller

import "testing"

// TestEventReason: an event's reason begins with Muster, also without a state.
func TestEventReason(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"queued": "MusterQueued", "rejected": "MusterRejected", "": "Muster"} {
		t.Run(state, func(t *testing.T) {
			if got := eventReason(state); got != want {
				t.Errorf("state %q: the reason is %q, want %q", state, got, want)
			}
		})
	}
}
