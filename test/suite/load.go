package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// kind is what a gang is.
type kind string

// Kinds of the load of Chaos. The zero value is a small RayCluster.
const (
	plain   kind = ""
	large   kind = "large"   // a RayCluster of several GPUs
	job     kind = "job"     // a RayJob that succeeds by itself
	wrapper kind = "wrapper" // an AppWrapper
	byHand  kind = "held"    // a labelled RayCluster, created by kubectl
	urgent  kind = "urgent"  // of a high priority: it evicts others of its cohort
	growing kind = "growing" // a RayCluster that is made larger while it runs
	staying kind = "staying" // a RayCluster of several GPUs, of a high priority, that runs until the fault is over
	probing kind = "probing" // a RayCluster without devices, in a queue of its own, that waits for no other gang
)

// grownFrom is how many pods a gang has before it grows: a head and a worker.
const grownFrom = 2

// kinds are drawn with these weights.
func kinds() []kind {
	return []kind{plain, plain, large, job, job, wrapper, byHand, urgent, growing}
}

// ends are the phases in which a gang may end.
func (k kind) ends() []string {
	if k == job { // it may be cancelled while it runs
		return []string{string(workload.Succeeded), string(workload.Cancelled)}
	}
	return []string{string(workload.Cancelled)}
}

// probeQueue is where gangs go that show how long all parts of an installation take,
// without a wait for others.
const probeQueue = "probe"

// MixedQueues is the file of queues of a mixed load: one without quota, two in a
// cohort that borrow from each other and evict what has less priority, and one for
// probes. Where quota is to change, the file leaves out the ClusterQueues, which are
// applied: applied objects do not change those of the file.
func MixedQueues(namespace string, shape Shape) string {
	file := fmt.Sprintf(`queues:
- {name: default, namespaces: [%[1]s]}
- {name: research, namespaces: [%[1]s]}
- {name: product, namespaces: [%[1]s]}
- {name: probe, namespaces: [%[1]s]}
resourceFlavors:
- {name: any}
cohorts:
- {name: company}
workloadPriorityClasses:
- {name: urgent, value: 1000}
`, namespace)
	if shape.Quota {
		return file
	}
	return file + fmt.Sprintf(`clusterQueues:
- {name: research, %[1]s}
- {name: product, %[1]s}
`, cohortQueue(nominalQuota))
}

// cohortQueue has the fields of a ClusterQueue of the cohort, as JSON.
func cohortQueue(quota int) string {
	return fmt.Sprintf(`"cohortName": "company", "quotaCheckStrategy": "IgnoreUndeclared",
  "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
  "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [
    {"name": "any", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d, "borrowingLimit": 6}]}]}]`, quota)
}

// submitDrawn submits a gang of a kind that chance draws.
func (w *world) submitDrawn(t *testing.T) workload.ID {
	t.Helper()
	k := kinds()[w.random.IntN(len(kinds()))]
	queue := []string{"default", "research", "product"}[w.random.IntN(3)]
	if k == urgent && queue == "default" {
		queue = "research"
	}
	if k == byHand {
		queue = "default"
	}
	return w.submitAs(t, k, queue)
}

// submitProbe submits a gang that waits for nothing but the parts of the installation.
func (w *world) submitProbe(t *testing.T) workload.ID {
	t.Helper()
	return w.submitAs(t, probing, probeQueue)
}

// known returns the gang of a record; the caller holds mu. A gang by kubectl is known
// by its name until its id is heard of.
func (w *world) known(record workload.Record) *gang {
	if g := w.submitted[record.ID]; g != nil {
		return g
	}
	g := w.submitted[workload.ID(record.Name)]
	if g == nil || g.kind != byHand {
		return nil
	}
	delete(w.submitted, workload.ID(record.Name))
	w.submitted[record.ID] = g
	w.alias[workload.ID(record.Name)] = record.ID
	return g
}

// gangOf returns a gang by the id that submitDrawn returned; the caller holds mu.
func (w *world) gangOf(id workload.ID) *gang {
	if now, ok := w.alias[id]; ok {
		id = now
	}
	return w.submitted[id]
}

// submitGang submits a gang, once more if need be; the caller holds mu.
func (w *world) submitGang(g *gang) {
	manifest := stack.RayCluster(g.name, 1, 1)
	switch g.kind {
	case byHand:
		w.createLabelled(g)
		return
	case large:
		manifest = stack.RayCluster(g.name, 3, 1)
	case probing:
		manifest = stack.RayCluster(g.name, 1, 0)
	case job:
		manifest = stack.RayJob(g.name, 1, 1, "succeeded", "1s")
	case wrapper:
		text, err := json.Marshal(stack.AppWrapper(w.access.Namespace, g.name, stack.RayCluster(g.name, 1, 1)))
		if err != nil {
			w.breach("encode %s: %v", g.name, err)
			return
		}
		e := submission(g.name)
		e.DataContentType, e.Data = "application/yaml", text
		w.publish(event.SubmitSubject(g.queue), e)
		return
	case staying:
		manifest = stack.Labelled(stack.RayCluster(g.name, 3, 1), "kueue.x-k8s.io/priority-class", "urgent")
	case urgent:
		manifest = stack.Labelled(stack.RayCluster(g.name, 2, 1), "kueue.x-k8s.io/priority-class", "urgent")
	}
	e := submission(g.name)
	e.Data = json.RawMessage(manifest)
	w.publish(event.SubmitSubject(g.queue), e)
}

var rayClusters = ray.Resource("rayclusters")

// createLabelled creates a labelled RayCluster, as kubectl does; that it exists is fine.
func (w *world) createLabelled(g *gang) {
	ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
	defer cancel()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(stack.Labelled(stack.RayCluster(g.name, 1, 1), "muster.dev/queue-name", g.queue))); err != nil {
		w.breach("read %s: %v", g.name, err)
		return
	}
	_, _ = w.kube.Resource(rayClusters).Namespace(w.access.Namespace).Create(ctx, object, metav1.CreateOptions{})
}

// mayEnd does to a running gang what its kind wants, and reports whether it may be
// cancelled; the caller holds mu.
func (w *world) mayEnd(g *gang) bool {
	if g.kind == byHand { // its owner deletes it
		ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
		defer cancel()
		_ = w.kube.Resource(rayClusters).Namespace(w.access.Namespace).Delete(ctx, g.name, metav1.DeleteOptions{})
		return false
	}
	if g.kind == staying {
		return g.released
	}
	if g.kind != growing || g.grown {
		return g.kind != job
	}
	ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
	defer cancel()
	patch := []byte(`[{"op":"replace","path":"/spec/workerGroupSpecs/0/maxReplicas","value":2},{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":2}]`)
	_, err := w.kube.Resource(rayClusters).Namespace(w.access.Namespace).Patch(ctx, g.name, types.JSONPatchType, patch, metav1.PatchOptions{})
	g.grown = err == nil
	return false
}

// submission is the message that submits a gang of a head and a worker with a GPU.
func submission(name string) event.Envelope {
	return event.Envelope{
		SpecVersion: event.SpecVersion, ID: name, Source: source, Type: event.SubmitType,
		DataContentType: "application/json", Data: json.RawMessage(stack.RayCluster(name, 1, 1)),
	}
}
