package state

import (
	"cmp"
	"fmt"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// waitsFor returns what keeps the pods of a started gang from being ready, as far as it was
// observed: of the first pod that has a cause, else of the first that is being created;
// empty when none has one.
func (t *tables) waitsFor(e *entry) string {
	g := t.gangs[gangKey{e.Cluster, e.ID}]
	if g == nil {
		return ""
	}
	creating := ""
	for _, pod := range g.pods {
		if pod.Attempt == e.Attempt && pod.Waits != "" && !pod.Ready && !pod.Deleting {
			text := fmt.Sprintf("pod %s: %s", pod.Name, sanitize(pod.Waits))
			if !strings.Contains(pod.Waits, " waits: ContainerCreating: ") {
				return text
			}
			creating = cmp.Or(creating, text) // it may only be slow: another pod may have the cause
		}
	}
	return creating
}

// lacksPods reports that nothing has made a pod of a gang whose object is there, and who should;
// empty when a pod has been seen.
func (t *tables) lacksPods(e *entry) string {
	if g := t.gangs[gangKey{e.Cluster, e.ID}]; g != nil {
		for _, pod := range g.pods {
			if pod.Attempt == e.Attempt {
				return ""
			}
		}
	}
	if e.Kind == workload.KindAppWrapper {
		return "no pod exists yet: do the controllers of its objects run?"
	}
	return "no pod exists yet: does the KubeRay operator run?"
}
