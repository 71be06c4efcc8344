package reconcile

import (
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// TestRemoveRayObject: only the object that was created goes, and the places are given
// back once no pod is left.
func TestRemoveRayObject(t *testing.T) {
	t.Parallel()
	created := event.GangStatus{Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, Created: true, UID: "uid-r"}
	relabelled, another, heldBack := rayOf("", 0), rayOf("", 0), rayOf("", 0)
	another.UID = "another"
	heldBack.Resumed = true
	for name, c := range map[string]struct {
		object   *kubernetes.Object
		set      func(*cluster)
		before   []event.GangStatus
		deleted  []string
		released bool
		err      bool
	}{
		"it is there":               {object: rayOf("w", 1), deleted: []string{"r"}, released: true},
		"of an earlier attempt":     {object: rayOf("w", 0), deleted: []string{"r"}, released: true},
		"it is gone":                {released: true},
		"of another workload":       {object: rayOf("other", 1), released: true},
		"labels were taken off":     {object: relabelled, before: []event.GangStatus{created}, deleted: []string{"r"}, released: true},
		"another one of its name":   {object: another, before: []event.GangStatus{created}, released: true},
		"a user's, suspended again": {object: heldBack, before: []event.GangStatus{created}, released: true},
		"not cached": {object: rayOf("w", 1), set: func(c *cluster) { c.uncached = map[string]bool{"r": true} },
			deleted: []string{"r"}, released: true},
		"no answer": {object: rayOf("w", 1), set: func(c *cluster) { c.answers["delete r"] = errSilent }, err: true},
		"pods are left": {object: rayOf("w", 1), set: func(c *cluster) { c.left = kubernetes.Left{Pods: 1} },
			deleted: []string{"r"}},
		"pods are seen": {object: rayOf("w", 1), set: func(c *cluster) { c.pods = []gang.Pod{{Namespace: "n", Name: "p", Attempt: 1}} },
			deleted: []string{"r"}},
		"pods that have ended are seen": {object: rayOf("w", 1), set: func(c *cluster) { c.pods = []gang.Pod{{Namespace: "n", Ended: true}} },
			deleted: []string{"r"}, released: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, c.before...)
			if c.object != nil {
				copied := *c.object
				p.cluster.objects["r"] = &copied
			}
			if c.set != nil {
				c.set(p.cluster)
			}
			command := rayCommand(1)
			command.State, command.Manifest = event.Absent, nil
			p.Command(&command)
			if err := p.see(t, 2); (err != nil) != c.err {
				t.Errorf("the look ended with %v, want an error: %v", err, c.err)
			}
			if !slices.Equal(p.cluster.deleted, c.deleted) {
				t.Errorf("deleted are %v, want %v", p.cluster.deleted, c.deleted)
			}
			if p.status.Released != c.released || c.released && !p.status.Gone {
				t.Errorf("status %+v, want released %v", p.status, c.released)
			}
		})
	}
}

// TestRemoveWrapped: of the wrapped objects those go that were created, by UID or by
// their labels, and nothing else of the same name.
func TestRemoveWrapped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*kubernetes.Wrapped)
		known   bool // the status has the UID
		deleted []string
	}{
		"created":                  {known: true, deleted: []string{"b"}},
		"labels were taken off":    {known: true, change: func(o *kubernetes.Wrapped) { o.Workload = "" }, deleted: []string{"b"}},
		"known by its labels":      {deleted: []string{"b"}},
		"of an earlier attempt":    {change: func(o *kubernetes.Wrapped) { o.Attempt = 0 }, deleted: []string{"b"}},
		"of another workload":      {change: func(o *kubernetes.Wrapped) { o.Workload = "other" }},
		"another one of its name":  {known: true, change: func(o *kubernetes.Wrapped) { o.UID, o.Workload = "another", "" }},
		"without labels or status": {change: func(o *kubernetes.Wrapped) { o.Workload = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := event.GangStatus{Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, Created: true}
			if c.known {
				status.Objects = []event.CreatedObject{{APIVersion: "v1", Kind: "Thing", Name: "b", UID: "uid-b"}}
			}
			p := play(t, status)
			p.cluster.items[thingB] = itemOf("w", 1)
			if c.change != nil {
				c.change(p.cluster.items[thingB])
			}
			command := wrapped(t, "b")
			command.State = event.Absent
			p.Command(&command)
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.cluster.deleted, c.deleted) || !p.status.Gone || !p.status.Released {
				t.Errorf("deleted are %v, status %+v; want %v and the places given back", p.cluster.deleted, p.status, c.deleted)
			}
		})
	}
}

// TestPodsThatDoNotEnd: pods are deleted ForceAfter after they should have ended, by
// force those whose deletion has begun.
func TestPodsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	pod := gang.Pod{Namespace: "n", Name: "p", UID: "p", Workload: "w", Attempt: 1, Node: "a"}
	leaving, late, next, elsewhere := pod, pod, pod, pod
	leaving.Deleting, leaving.GoneBy = true, start.Add(time.Hour)
	late.Deleting, late.GoneBy = true, start
	next.Attempt = 2
	elsewhere.Namespace = "other"
	for name, c := range map[string]struct {
		pod     gang.Pod
		after   time.Duration
		deleted []string
	}{
		"at once":                 {pod: pod},
		"after the patience":      {pod: pod, after: time.Minute + 1, deleted: []string{"p"}},
		"it has time to end":      {pod: leaving, after: time.Minute + 1},
		"it has not ended":        {pod: late, after: time.Minute + 1, deleted: []string{"p by force"}},
		"it has not ended yet":    {pod: late, after: time.Minute},
		"of a later attempt":      {pod: next, after: time.Minute + 1},
		"of another's namespace":  {pod: elsewhere, after: time.Minute + 1},
		"long after the patience": {pod: leaving, after: 2 * time.Hour, deleted: []string{"p by force"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.pods, p.cluster.left = []gang.Pod{c.pod}, kubernetes.Left{Pods: 1}
			command := rayCommand(1)
			command.State = event.Absent
			p.Command(&command)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			p.clock = p.clock.Add(c.after)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.cluster.deleted, c.deleted) {
				t.Errorf("deleted are %v, want %v", p.cluster.deleted, c.deleted)
			}
			if p.status.Released {
				t.Error("the places are given back while a pod is left")
			}
		})
	}
}

// TestAFinishedJobIsLeft: of a job that has ended only its RayCluster goes; when pods do
// not end in time the job goes, too.
func TestAFinishedJobIsLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left     kubernetes.Left
		after    time.Duration
		deleted  []string
		released bool
	}{
		"its pods end":        {deleted: []string{"r-cluster"}, released: true},
		"its pods run":        {left: kubernetes.Left{Pods: 1}, deleted: []string{"r-cluster"}},
		"its pods do not end": {left: kubernetes.Left{Pods: 1}, after: time.Minute + 1, deleted: []string{"r-cluster", "r"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			job := rayOf("w", 1)
			job.Kind, job.Outcome = "RayJob", event.OutcomeSucceeded
			p.cluster.objects["r"], p.cluster.left = job, c.left
			p.cluster.clusters = []kubernetes.Object{{Kind: "RayCluster", Namespace: "n", Name: "r-cluster", Workload: "w", Attempt: 1}}
			command := rayCommand(1)
			command.Kind, command.State = "RayJob", event.Ended
			p.Command(&command)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			p.cluster.clusters = nil
			p.clock = p.clock.Add(c.after)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.cluster.deleted, c.deleted) || p.status.Released != c.released {
				t.Errorf("deleted are %v, status %+v; want %v, released %v", p.cluster.deleted, p.status, c.deleted, c.released)
			}
		})
	}
}
