package app_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/replay"
)

// TestARecordIsPlayedAgainstAnotherPolicy: the history of a real queue-manager is played again,
// also over a change of leader; with a policy that admits less, fewer start, and the comparison
// says which.
func TestARecordIsPlayedAgainstAnotherPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 8)
	w.live(12, rand.New(rand.NewPCG(7, 7)), "first")
	w.stopReplayable()
	w.start()
	w.live(6, rand.New(rand.NewPCG(8, 8)), "second")
	waiting := w.submit(gangOf("large", "default", 400))
	w.waits(waiting, workload.ReasonNeverFits)
	w.stopReplayable()

	play := func(policy string) replay.Playback {
		t.Helper()
		settings, err := replay.ReadPolicy([]byte(policy))
		if policy == "" {
			settings, err = nil, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		played, err := replay.Play(w.ctx, w.config.DatabaseURL, time.Time{}, settings, func(replay.Report) {})
		if err != nil {
			t.Fatal(err)
		}
		return played
	}
	as := play("")
	if as.Decisions == 0 || as.Recorded.Submitted != 19 || as.Played.Submitted != 19 || as.Recorded.Waiting != 1 || as.Played.Waiting != 1 || as.Recorded.Started == 0 {
		t.Fatalf("recorded %+v, played %+v, %d decisions; want 19 submissions of which one waits: %+v", as.Recorded.Totals, as.Played.Totals, as.Decisions, as.Played.Outcomes)
	}
	for _, d := range estimate.Classify(as.Recorded.ByID(), as.Played.ByID(), time.Minute) {
		if d.Class != estimate.DiffStarts { // one that was cancelled before its turn may start where time stands still
			t.Errorf("played as it was, %s fares differently: %s", d.Name, d.Class)
		}
	}
	held := as.Recorded.Held["nvidia.com/gpu"]
	if held <= 0 {
		t.Errorf("no GPU time is recorded: %v", as.Recorded.Held)
	}
	if used := as.Recorded.Utilisation["nvidia.com/gpu"]; used <= 0 || used > 1 || math.Abs(used*as.Offered["nvidia.com/gpu"]-held) > 1e-6*held {
		t.Errorf("the utilisation is %g, of %v GPU seconds and %v that were offered", used, held, as.Offered)
	}

	against := play("queues:\n- name: default\n  namespaces: [a]\nclusterQueues:\n- name: default\n  resourceGroups:\n" +
		"  - coveredResources: [nvidia.com/gpu]\n    flavors:\n    - name: f\n      resources: [{name: nvidia.com/gpu, nominalQuota: 0}]\nresourceFlavors: [{name: f}]\n")
	if against.Played.Started != 0 {
		t.Errorf("without quota %d start", against.Played.Started)
	}
	if used, known := against.Played.Utilisation["nvidia.com/gpu"]; used != 0 || !known {
		t.Errorf("without quota the utilisation is %v", against.Played.Utilisation)
	}
	for _, d := range estimate.Classify(as.Played.ByID(), against.Played.ByID(), time.Second) {
		if d.Class != estimate.DiffStartsNot && d.Class != estimate.DiffRefused {
			t.Errorf("without quota %s fares so: %s", d.Name, d.Class)
		}
	}
}

func TestAPolicyThatIsNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"queues: 7": "queues", "clusterQueues: [{name: a, cohort: 7}]": "cohort"} {
		if _, err := replay.ReadPolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
