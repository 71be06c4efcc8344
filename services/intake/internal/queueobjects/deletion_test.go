package queueobjects

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
)

const userQueue = `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"LocalQueue","metadata":{"name":"user-queue","namespace":"team-a","generation":1},"spec":{"clusterQueue":"vision"}}`

func remove(object *unstructured.Unstructured) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	object.SetDeletionTimestamp(&now)
}

func rounds(t *testing.T, s *Sync) func() {
	return func() {
		t.Helper()
		if err := s.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// stopPolicyOf is what counts of an applied queue; there is false when it is not applied.
func stopPolicyOf(t *testing.T, m *manager, kind string) (policy string, there bool) {
	t.Helper()
	for _, a := range m.applied {
		if a.Kind != kind {
			continue
		}
		object, err := kueue.ParseOne(a.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range object.Policy.ClusterQueues {
			return q.StopPolicy, true
		}
		for _, q := range object.Policy.LocalQueues {
			return q.StopPolicy, true
		}
	}
	return "", false
}

// TestAQueueInUseStaysUntilItIsRemoved: a deleted queue with workloads is in the cluster,
// says so, and admits nothing, until queue-manager has removed it.
func TestAQueueInUseStaysUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	for kind, manifest := range map[string]string{"ClusterQueue": vision, "LocalQueue": userQueue} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, m := &server{objects: []*unstructured.Unstructured{object(t, manifest)}}, &manager{}
			queue, round := s.objects[0], rounds(t, syncOf(t, s, m))
			round()
			if !slices.Contains(queue.GetFinalizers(), finalizer) {
				t.Fatalf("the queue in use has the finalizers %q", queue.GetFinalizers())
			}
			m.inUse = map[string]string{queue.GetName(): "it has 1 workload"}
			remove(queue)
			round()
			if policy, _ := stopPolicyOf(t, m, kind); policy != quota.Deleting || len(s.objects) != 1 {
				t.Errorf("with a workload stopPolicy %q counts, and the cluster has %d objects; want %s and 1", policy, len(s.objects), quota.Deleting)
			}
			if status, message := conditionOf(t, queue); status != "False" || !strings.Contains(message, "is being deleted") || !strings.Contains(message, "it has 1 workload") {
				t.Errorf("it is active: %s, %q", status, message)
			}
			applied := len(m.applied)
			m.asked = nil
			round()
			if slices.ContainsFunc(m.asked, func(a string) bool { return strings.HasPrefix(a, "+") }) || len(m.applied) != applied {
				t.Errorf("the next round asks for %q; want the removal alone", m.asked)
			}
			m.inUse = nil
			round()
			if _, there := stopPolicyOf(t, m, kind); there || len(s.objects) != 0 {
				t.Errorf("without workloads it is applied: %v, and the cluster has %d objects; want false and none", there, len(s.objects))
			}
		})
	}
}

// TestADeletedQueueMayBeDrained: its stopPolicy still counts, to end its workloads.
func TestADeletedQueueMayBeDrained(t *testing.T) {
	t.Parallel()
	s, m := &server{objects: []*unstructured.Unstructured{object(t, vision)}}, &manager{}
	round := rounds(t, syncOf(t, s, m))
	round()
	m.inUse = map[string]string{"vision": "it has 1 workload"}
	remove(s.objects[0])
	round()
	if err := unstructured.SetNestedField(s.objects[0].Object, quota.HoldAndDrain, "spec", "stopPolicy"); err != nil {
		t.Fatal(err)
	}
	round()
	if policy, _ := stopPolicyOf(t, m, "ClusterQueue"); policy != quota.HoldAndDrain {
		t.Errorf("stopPolicy %q counts, want %s", policy, quota.HoldAndDrain)
	}
}

// TestAQueueThatHasGoneAdmitsNothing: without the right to write finalizers, or when one
// removed it by hand, the object goes with workloads in the queue.
func TestAQueueThatHasGoneAdmitsNothing(t *testing.T) {
	t.Parallel()
	s, m := &server{objects: []*unstructured.Unstructured{object(t, vision)}, noRight: true}, &manager{}
	round := rounds(t, syncOf(t, s, m))
	round()
	if policy, there := stopPolicyOf(t, m, "ClusterQueue"); !there || policy != "" {
		t.Fatalf("applied: %v with stopPolicy %q", there, policy)
	}
	gone := s.objects[0]
	s.objects, m.inUse = nil, map[string]string{"vision": "it has 1 workload"}
	for range 2 {
		round()
		if policy, _ := stopPolicyOf(t, m, "ClusterQueue"); policy != quota.Deleting {
			t.Errorf("stopPolicy %q counts, want %s", policy, quota.Deleting)
		}
	}
	s.objects = append(s.objects, gone)
	round()
	if policy, there := stopPolicyOf(t, m, "ClusterQueue"); !there || policy != "" {
		t.Errorf("made again it is applied: %v with stopPolicy %q; want none", there, policy)
	}
}

// TestAStoppedQueueIsNotActive: by its manifest, by that of its ClusterQueue, or by an
// operator; and a ClusterQueue that no queue leads to.
func TestAStoppedQueueIsNotActive(t *testing.T) {
	t.Parallel()
	stopped := strings.Replace(vision, `"spec":{`, `"spec":{"stopPolicy":"Hold",`, 1)
	held := query.QueuesAnswer{Queues: []query.Queue{{Name: "user-queue", Namespaces: []string{"team-a"}, ClusterQueue: "vision", Hold: &quota.QueueStop{Name: "user-queue", By: "alice"}}}}
	heldCluster := query.QueuesAnswer{Queues: []query.Queue{{Name: "user-queue", Namespaces: []string{"team-a"}, ClusterQueue: "vision", ClusterQueueHold: &quota.QueueStop{Name: "vision", By: "bob"}}}}
	onlyOne := query.QueuesAnswer{Queues: append([]query.Queue{{Name: "other", Namespaces: []string{"team-b"}, ClusterQueue: "vision"}}, held.Queues...)}
	for name, test := range map[string]struct {
		cluster, local string
		answer         query.QueuesAnswer
		want           [2]string // reasons
		messages       [2]string
	}{
		"active":                   {vision, userQueue, query.QueuesAnswer{}, [2]string{"Ready", "Ready"}, [2]string{"Can submit", "Can submit"}},
		"stopped ClusterQueue":     {stopped, userQueue, query.QueuesAnswer{}, [2]string{"Stopped", "ClusterQueueIsInactive"}, [2]string{"stopPolicy Hold", `ClusterQueue "vision"`}},
		"stopped LocalQueue":       {vision, strings.Replace(userQueue, `"spec":{`, `"spec":{"stopPolicy":"HoldAndDrain",`, 1), query.QueuesAnswer{}, [2]string{"Ready", "Stopped"}, [2]string{"Can submit", "stopPolicy HoldAndDrain"}},
		"held":                     {vision, userQueue, held, [2]string{"Stopped", "Stopped"}, [2]string{"by alice", "by alice"}},
		"one of two held":          {vision, userQueue, onlyOne, [2]string{"Ready", "Stopped"}, [2]string{"Can submit", "by alice"}},
		"held ClusterQueue":        {vision, userQueue, heldCluster, [2]string{"Stopped", "Stopped"}, [2]string{"by bob", "by bob"}},
		"inactive without a queue": {vision, speech, query.QueuesAnswer{Inactive: map[string]string{"vision": "it asks for more"}}, [2]string{"Inactive", "Ready"}, [2]string{"it asks for more", "Can submit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{objects: []*unstructured.Unstructured{object(t, test.cluster), object(t, test.local)}}
			rounds(t, syncOf(t, s, &manager{answer: test.answer}))()
			for i, o := range s.objects {
				conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
				c := conditions[0].(map[string]any)
				if c["reason"] != test.want[i] || !strings.Contains(c["message"].(string), test.messages[i]) || (c["status"] == "True") != (test.want[i] == "Ready") {
					t.Errorf("%s: %v; want %s and %q", o.GetKind(), c, test.want[i], test.messages[i])
				}
			}
		})
	}
}

// TestARefusedFlavorIsReported on itself, and in the status of its queues: its kind has none.
func TestARefusedFlavorIsReported(t *testing.T) {
	t.Parallel()
	bad := object(t, strings.Replace(flavor, `"generation":1}`, `"generation":1},"spec":{"nodeLabel":{}}`, 1))
	s := &server{objects: []*unstructured.Unstructured{bad, object(t, vision), object(t, speech)}}
	round := rounds(t, syncOf(t, s, &manager{}))
	round()
	if why := bad.GetAnnotations()[refusedKey]; !strings.Contains(why, "spec.nodeLabel") {
		t.Errorf("the flavor says %q", why)
	}
	if _, message := conditionOf(t, s.objects[1]); !strings.Contains(message, `ResourceFlavor "a100" is refused: `) || !strings.Contains(message, "spec.nodeLabel") {
		t.Errorf("the queue of the flavor says %q", message)
	}
	if _, message := conditionOf(t, s.objects[2]); strings.Contains(message, "a100") {
		t.Errorf("a queue without it says %q", message)
	}
	delete(bad.Object, "spec")
	round()
	if why, refused := bad.GetAnnotations()[refusedKey]; refused {
		t.Errorf("the flavor, which is right now, says %q", why)
	}
	if _, message := conditionOf(t, s.objects[1]); strings.Contains(message, "a100") {
		t.Errorf("its queue says %q", message)
	}
}

// TestRefusedCohortsAndChecksAreReported in the status of the queues that refer to them.
func TestRefusedCohortsAndChecksAreReported(t *testing.T) {
	t.Parallel()
	queue := object(t, strings.Replace(vision, `"spec":{`, `"spec":{"cohort":"all","admissionChecks":["nodes"],`, 1))
	s := &server{objects: []*unstructured.Unstructured{
		object(t, flavor), queue,
		object(t, `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Cohort","metadata":{"name":"all"},"spec":{"colour":"red"}}`),
		object(t, `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"AdmissionCheck","metadata":{"name":"nodes"},"spec":{"controller":"x"}}`),
	}}
	rounds(t, syncOf(t, s, &manager{}))()
	_, message := conditionOf(t, queue)
	for _, want := range []string{`Cohort "all" is refused: `, "spec.colour", `AdmissionCheck "nodes" is refused: `, "spec.controller"} {
		if !strings.Contains(message, want) {
			t.Errorf("the queue says %q, want %q", message, want)
		}
	}
}
