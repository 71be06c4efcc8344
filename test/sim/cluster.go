package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// clusterName is what queue-manager calls the cluster.
const clusterName = "played"

// cluster is the API server with what runs behind it: KubeRay, the scheduler, the
// kubelets and the garbage collector.
type cluster struct {
	w         *World
	uids      int
	nodes     map[string]*node
	created   map[string]time.Time // when each node was, also of those that have gone
	objects   map[string]*object   // by namespace/name
	pods      map[string]*pod      // the same
	informers []*informer
	leases    map[string]*coordination.Lease // by name
	intruders int
	lurking   []lurker
	forged    map[workload.ID][]*pod // in the namespace of the gang whose labels they have
	quota     *podQuota              // nil for none
	scaler    *autoscaler            // nil for none
	// leaseVersion counts the writes of Leases.
	leaseVersion int
	leaseWatches []*leaseWatch
	elections    []*election // of the terms that have had a Lease last
}

type node struct {
	capacity.Node
}

// object is a RayCluster.
type object struct {
	namespace, name, uid string
	workload             workload.ID
	attempt              int
	epoch                int64 // of the command that it was created by, as its annotation says
	sets                 []workload.PodSet
	atStart              int // pods that it begins with
	made                 int // pods that were ever made of it
	evictingAt           string
}

// pod is a pod of a gang, or an intruder, which has no workload.
type pod struct {
	namespace, name, uid string
	workload             workload.ID
	claims               workload.ID // of a forged one: what its labels say
	attempt              int
	set                  string
	owner, ownerName     string // uid and name of the object
	requests             resource.List
	gated                bool
	hostname, node       string
	ready, deleting      bool
	goneBy               time.Time
}

func newCluster(w *World) *cluster {
	c := &cluster{w: w, nodes: map[string]*node{}, created: map[string]time.Time{}, objects: map[string]*object{}, pods: map[string]*pod{}, leases: map[string]*coordination.Lease{}, forged: map[workload.ID][]*pod{}}
	first := 5
	if w.scaled() {
		first, c.scaler = 1, newAutoscaler(c)
	}
	for i := range first {
		c.addNode(fmt.Sprintf("node-%d", i))
	}
	return c
}

func (c *cluster) addNode(name string) {
	var created time.Time
	if c.w.scaled() { // the time sets what comes for a request apart from older nodes
		created = c.w.now.UTC().Truncate(time.Second)
	}
	c.created[name] = created
	c.nodes[name] = &node{Node: capacity.Node{
		Cluster: clusterName, Name: name, Ready: true, Created: created, Labels: map[string]string{kube.HostnameLabel: name},
		Allocatable: resource.List{"cpu": 16_000, "memory": 64 << 30, "nvidia.com/gpu": 4, resource.Pods: 20},
	}}
	if c.w.scaled() {
		c.w.narrate("node %s is there", name)
	}
	c.changed("node " + name)
}

// changed notifies the informers.
func (c *cluster) changed(key string) {
	for _, i := range c.informers {
		i.offer(key)
	}
}

func (c *cluster) uid() string {
	c.uids++
	return fmt.Sprintf("uid-%d", c.uids)
}

// create takes an object in, as posted.
func (c *cluster) create(namespace string, manifest json.RawMessage) (uid string, err error) {
	var posted struct {
		Metadata struct {
			Name                string
			Labels, Annotations map[string]string
		}
	}
	if err := json.Unmarshal(manifest, &posted); err != nil {
		return "", err
	}
	read, err := ray.Shipped().Read(stripped(manifest))
	if err != nil {
		return "", fmt.Errorf("the played API server cannot read what is posted: %w", err)
	}
	labels := posted.Metadata.Labels
	attempt, _ := strconv.Atoi(labels[kube.AttemptLabel])
	epoch, _ := strconv.ParseInt(posted.Metadata.Annotations[kube.EpochKey], 10, 64)
	o := &object{
		namespace: namespace, name: posted.Metadata.Name, uid: c.uid(), workload: workload.ID(labels[kube.WorkloadLabel]),
		attempt: attempt, epoch: epoch, sets: read.PodSets,
	}
	for _, set := range o.sets {
		o.atStart += set.AtStart()
	}
	key := o.namespace + "/" + o.name
	if c.w.unheard && c.w.Bug == BugTwice {
		key += "-again"
		o.name += "-again"
	}
	if c.objects[key] != nil {
		return "", alreadyExists(o.name)
	}
	c.objects[key] = o
	c.w.narrate("created %s for %s attempt %d", o.name, c.w.submits.nameOf(o.workload), o.attempt)
	c.w.check.created(o)
	c.lure(o)
	c.changed("object " + key)
	c.w.after(c.w.between(5*time.Millisecond, 300*time.Millisecond), func() { c.keepPods(key, o) })
	return o.uid, nil
}

// stripped takes the marks of Muster off, which submissions must not have.
func stripped(manifest json.RawMessage) json.RawMessage {
	var tree map[string]any
	if json.Unmarshal(manifest, &tree) != nil {
		return manifest
	}
	walk(tree)
	clean, _ := json.Marshal(tree) // it came out of JSON
	return clean
}

func walk(tree any) {
	switch t := tree.(type) {
	case map[string]any:
		delete(t, "schedulingGates")
		for key := range t {
			if strings.HasPrefix(key, "muster.dev/") {
				delete(t, key)
			} else {
				walk(t[key])
			}
		}
	case []any:
		for _, each := range t {
			walk(each)
		}
	}
}

// deleteObject takes an object away, and its pods after it.
func (c *cluster) deleteObject(key string) {
	o := c.objects[key]
	if o == nil {
		return
	}
	delete(c.objects, key)
	c.changed("object " + key)
	c.w.after(c.w.between(10*time.Millisecond, 3*time.Second), func() {
		for _, p := range c.podsOf(func(p *pod) bool { return p.owner == o.uid }) {
			c.deletePod(p, false)
		}
	})
}
