package app_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// savingTeam is a queue that declares how often its gangs save their work.
const savingTeam = `
resourceFlavors:
- name: any
queues:
- {name: research, namespaces: [default], life: {checkpointInterval: 10h}}
clusterQueues:
- name: research
  quotaCheckStrategy: IgnoreUndeclared
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 2}]}]
`

// TestACheckpointChangesWhoIsEvicted: the gang that was admitted first, and has saved its work,
// is evicted before one that would lose more. The next leader knows the checkpoint, and a
// replay has the same outcomes.
func TestACheckpointChangesWhoIsEvicted(t *testing.T) {
	t.Parallel()
	w := withPolicy(t, savingTeam)
	w.node("a", 2)
	first := w.submit(gangOf("first", "research", 1))
	w.started(first, 1)
	second := w.submit(gangOf("second", "research", 1))
	w.started(second, 1)
	start := w.recordOf(first).Times
	dearer := w.recordOf(second).Times.Admitted.Add(start.Running.Sub(start.Admitted) + 2*time.Second)
	w.nodes("the second has more to lose than the start of the first", func([]query.Node) bool { return time.Now().After(dearer) })
	w.publish(event.WorkloadSubject("research"), &event.WorkloadCheckpoint{Workload: first, Attempt: 1, At: time.Now(), By: "ann@ops"})
	w.nodes("the checkpoint is stored", func([]query.Node) bool {
		r := w.recordOf(first)
		return r.Saved() != nil
	})
	stored := w.recordOf(first)
	saved := stored.Saved()
	w.stop()
	w.start() // another leader
	urgent := gangOf("urgent", "research", 1)
	urgent.Priority = 5
	w.submit(urgent)
	reason := w.phase(first, workload.Evicting).Reason
	if reason.Kind != workload.ReasonPreempted || !strings.Contains(reason.Message, "since its last checkpoint at "+saved.At.UTC().Format(time.RFC3339)) {
		t.Errorf("it is evicted because of %+v, and has saved its work at %s", reason, saved.At)
	}
	w.command(first, event.Absent, 1)
	w.status(event.GangStatus{Workload: first, Attempt: 1, Created: true, Gone: true, Released: true})
	w.command(urgent.ID, event.Present, 1)
	w.checkReplay()
}
