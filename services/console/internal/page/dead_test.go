package page

import "testing"

// TestWhereADeadLetterCameFrom: the subject of a message has what it is and where it came from.
func TestWhereADeadLetterCameFrom(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string][2]string{
		"muster.submit.research":              {"submission or request", "queue research"},
		"muster.submit.research.alice":        {"submission or request", "queue research, user alice"},
		"muster.workload.research":            {"accepted submission or request", "queue research"},
		"muster.capacity.east.node.gpu-7":     {"observation", "watcher of cluster east"},
		"muster.status.east.0-1":              {"status", "dispatcher of cluster east"},
		"muster.dispatch.east.0-1":            {"command", "for cluster east"},
		"muster.checked.licences":             {"answer", "AdmissionCheck licences"},
		"muster.new.x":                        {"", ""},
		"other.submit.research":               {"", ""},
		"muster":                              {"", ""},
		"muster.events.research.0-1":          {"event of a workload", "queue research"},
		"muster.check.licences.0-1":           {"question", "for AdmissionCheck licences"},
		"muster.kept.research":                {"accepted submission or request", "queue research"},
		"muster.capacity.east.synced":         {"observation", "watcher of cluster east"},
		"muster.capacity.east.namespace.team": {"observation", "watcher of cluster east"},
	} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			if what, from := originOf(subject); what != want[0] || from != want[1] {
				t.Errorf("it is %q from %q, want %q", what, from, want)
			}
		})
	}
}
