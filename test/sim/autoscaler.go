package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/workload"
)

// Faults of an autoscaler.
const (
	NodesLate    Fault = "the nodes of a request come late"
	NodesPartial Fault = "a node of a request never comes"
	NodesFailed  Fault = "a request for nodes fails"
	NodesExpired Fault = "the booking of nodes expires"
	NodesRevoked Fault = "the nodes of a request are taken back"
	NodesLost    Fault = "a node of a request is lost"
	NodesGone    Fault = "a request for nodes is deleted by another party"
)

const (
	requestKind = "ProvisioningRequest"
	requestAPI  = "autoscaling.x-k8s.io/v1"
	// nodesIdle is how long a node is kept without pods and without a request.
	nodesIdle = 20 * time.Second
	// partialWaits is how long a gang may wait for a node that never comes.
	partialWaits = 6 * time.Minute
)

// autoscaler plays ProvisioningRequests: each gets a node for each of its pods, at once or
// late, in part or not at all, and nodes go again.
type autoscaler struct {
	c      *cluster
	random *rand.Rand
	items  map[string]*item // requests and PodTemplates, by kind, namespace and name
	made   map[string]bool  // names of requests that were created
	taken  map[string]bool  // of those that another party has deleted
	ready  map[string]bool  // requests that have been provisioned
	nodes  int
	idle   map[string]time.Time // since when nodes have been idle
	// noStock is until when there are no nodes for pending pods.
	noStock time.Time
}

func newAutoscaler(c *cluster) *autoscaler {
	a := &autoscaler{c: c, random: rand.New(rand.NewPCG(c.w.Seed, 23)), items: map[string]*item{}, made: map[string]bool{}, taken: map[string]bool{}, ready: map[string]bool{}, idle: map[string]time.Time{}}
	c.w.after(time.Second, a.scaleDown)
	if c.w.shown() {
		c.w.after(time.Second, a.serve)
	}
	return a
}

// create takes a request or a PodTemplate in.
func (a *autoscaler) create(id bundle.Identity, manifest json.RawMessage) (string, error) {
	key := keyOf(id)
	if a.items[key] != nil {
		return "", apierrors.NewAlreadyExists(schema.GroupResource{Resource: id.Kind}, id.Name)
	}
	var posted struct {
		Metadata struct{ Labels, Annotations map[string]string }
		Spec     struct{ PodSets []struct{ Count int } }
	}
	it := &item{id: id, uid: a.c.uid()}
	if err := json.Unmarshal(manifest, &posted); err != nil {
		return "", err
	}
	if err := json.Unmarshal(manifest, &it.content); err != nil {
		return "", err
	}
	it.workload = workload.ID(posted.Metadata.Labels[kube.WorkloadLabel])
	for _, set := range posted.Spec.PodSets {
		it.pods += set.Count
	}
	a.items[key] = it
	switch id.Kind {
	case requestKind:
		a.asked(it)
	case placeholderKind:
		a.placed(it, posted.Metadata.Labels, posted.Metadata.Annotations)
	}
	return it.uid, nil
}

// asked checks a request that is new, and has it answered.
func (a *autoscaler) asked(it *item) {
	w := a.c.w
	name := w.submits.nameOf(it.workload)
	w.narrate("%s asks for %d nodes: %s", name, it.pods, it.id.Name)
	w.check.made[madeAsked]++
	if a.made[it.id.Name] && !a.taken[it.id.Name] { // the dispatcher may not have reported yet that it was there
		w.breach("G4", "request %s of %s was made twice", it.id.Name, name)
	}
	a.made[it.id.Name] = true
	for _, other := range a.requests() {
		if other != it && other.workload == it.workload {
			w.breach("G4", "%s has two requests: %s and %s", name, other.id.Name, it.id.Name)
		}
	}
	switch each := w.submits.by[it.workload]; {
	case each == nil && !w.submits.hostile[it.workload]:
		w.breach("G3", "request %s is of %s, which was never submitted", it.id.Name, name)
	case each != nil && it.pods > each.pods:
		w.breach("G1", "request %s asks for %d pods of %s, which has fewer", it.id.Name, it.pods, name)
	}
	w.after(w.between(50*time.Millisecond, 500*time.Millisecond), func() { a.set(it, "Accepted") })
	a.answer(it)
}

// answer draws what becomes of a request. When the faults of the run are over it gets its
// nodes.
func (a *autoscaler) answer(it *item) {
	w := a.c.w
	fault := []Fault{"", "", "", NodesLate, NodesPartial, NodesFailed, NodesExpired, NodesRevoked, NodesLost, NodesGone}[a.random.IntN(10)]
	delay := time.Second + time.Duration(a.random.Int64N(int64(10*time.Second))).Truncate(time.Millisecond)
	soon := time.Duration(a.random.Int64N(int64(8 * time.Second))).Truncate(time.Millisecond)
	if w.now.Sub(w.start) > faultsFor {
		fault = ""
	}
	missing := 0
	switch fault {
	case NodesLate:
		delay += 30*time.Second + 10*soon
	case NodesPartial:
		missing = 1
		w.nemesis.last = later(w.nemesis.last, w.now.Add(partialWaits))
	}
	if fault != "" {
		w.nemesis.note(fault, it.id.Name)
	}
	w.after(delay, func() {
		switch {
		case !a.there(it):
		case fault == NodesFailed:
			a.set(it, "Failed")
		case fault == NodesGone && soon%(2*time.Millisecond) == 0:
			a.taken[it.id.Name] = true
			a.remove(it)
		default:
			a.provide(it, missing, func() { w.after(soon, func() { a.spoil(it, fault) }) })
		}
	})
}

// provide adds the nodes of a request, but for those that never come: all at once, or one after the
// other. Then it is provisioned.
func (a *autoscaler) provide(it *item, missing int, then func()) {
	every := time.Duration(0)
	if a.random.IntN(2) == 0 {
		every = 500*time.Millisecond + time.Duration(a.random.Int64N(int64(4*time.Second))).Truncate(time.Millisecond)
	}
	a.provideNext(it, it.pods-missing, every, then)
}

func (a *autoscaler) provideNext(it *item, nodes int, every time.Duration, then func()) {
	switch {
	case !a.there(it): // those that have come are idle
	case nodes > 0:
		a.nodes++
		name := fmt.Sprintf("scaled-%03d", a.nodes)
		it.nodes = append(it.nodes, name)
		a.c.addNode(name)
		next := func() { a.provideNext(it, nodes-1, every, then) }
		if every == 0 {
			next()
			return
		}
		a.c.w.after(every, next)
	default:
		a.ready[it.id.Name] = true
		a.c.w.check.made[madeProvisioned]++
		a.set(it, "Provisioned")
		then()
	}
}

// spoil has happen to a provisioned request what was drawn.
func (a *autoscaler) spoil(it *item, fault Fault) {
	if !a.there(it) {
		return
	}
	switch fault {
	case NodesExpired:
		it.ended = true
		a.set(it, "BookingExpired")
	case NodesRevoked:
		it.ended = true
		for _, name := range it.nodes {
			a.removeNode(name)
		}
		a.set(it, "CapacityRevoked")
	case NodesLost:
		a.removeNode(it.nodes[0])
	case NodesGone:
		a.taken[it.id.Name] = true
		a.remove(it)
	}
}
