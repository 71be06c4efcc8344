package app_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestACancellationReportsThatItWaits: it comes before its submission. An event says what it
// waits for and until when; the submission is cancelled when it comes.
func TestACancellationReportsThatItWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gang := gangOf("early", "default", 1)
	asked := time.Now()
	w.cancel("default", gang.ID)
	waits := await(w, "it says that it waits", func(e *event.RequestWaits) bool { return e.Workload == gang.ID })
	if waits.Queue != "default" || waits.Request != (&event.WorkloadCancel{}).EventType() || waits.Message == "" || waits.Until.Sub(asked) < 50*time.Minute {
		t.Errorf("it says %+v", waits)
	}
	w.phase(w.submit(gang), workload.Cancelled)
}
