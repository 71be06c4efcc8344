package app_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// namespace reports the team of a namespace.
func (w *world) namespace(name, team string) {
	w.t.Helper()
	w.publish(event.NamespaceSubject(cluster, name), &event.NamespaceObserved{
		Version: w.nextVersion(), Cluster: cluster, Namespace: name, Labels: map[string]string{"team": team},
	})
}

// TestASelectorDecidesWhichNamespacesUseAQueue, from the first report of its labels on, and
// under the next leader, too.
func TestASelectorDecidesWhichNamespacesUseAQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("one", 4)
	w.apply(strings.NewReplacer("namespaceSelector: {}", "namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [a]}]}", "nominalQuota: 1}", "nominalQuota: 4}").Replace(oneQueue))
	first := w.submit(gangOf("first", "user-queue", 1))
	if got := w.waits(first, workload.ReasonHeld).Reason.Message; !strings.Contains(got, "the namespaces of cluster") || !strings.Contains(got, "have not been reported yet") {
		t.Errorf("before a report it waits because %q", got)
	}
	w.namespace("team-a", "a")
	w.command(first, event.Present, 1)
	w.namespace("team-a", "b")
	second := w.submit(gangOf("second", "user-queue", 1))
	if got := w.waits(second, workload.ReasonHeld).Reason.Message; !strings.Contains(got, "namespace doesn't match ClusterQueue selector") || !strings.Contains(got, "it has team=b, and the selector wants team In (a)") {
		t.Errorf("in a namespace that is not selected it waits because %q", got)
	}
	w.stop()
	w.start()
	third := w.submit(gangOf("third", "user-queue", 1))
	if got := w.waits(third, workload.ReasonHeld).Reason.Message; !strings.Contains(got, "it has team=b") {
		t.Errorf("under the next leader it waits because %q", got)
	}
	w.namespace("team-a", "a")
	w.command(second, event.Present, 1)
	w.command(third, event.Present, 1)
}
