package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

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
	objects   map[string]*object // by namespace/name
	pods      map[string]*pod    // the same
	informers []*informer
	leases    map[string]*leaseObject
	intruders int
	lurking   []lurker
	forged    map[workload.ID][]*pod // in the namespace of the gang whose labels they have
	quota     *podQuota              // nil for none
}

type node struct {
	capacity.Node
}

// object is a RayCluster.
type object struct {
	namespace, name, uid string
	workload             workload.ID
	attempt              int
	stamped              bool
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
	c := &cluster{w: w, nodes: map[string]*node{}, objects: map[string]*object{}, pods: map[string]*pod{}, leases: map[string]*leaseObject{}, forged: map[workload.ID][]*pod{}}
	for i := range 5 {
		c.addNode(fmt.Sprintf("node-%d", i))
	}
	return c
}

func (c *cluster) addNode(name string) {
	c.nodes[name] = &node{Node: capacity.Node{
		Cluster: clusterName, Name: name, Ready: true, Labels: map[string]string{kube.HostnameLabel: name},
		Allocatable: resource.List{"cpu": 16_000, "memory": 64 << 30, "nvidia.com/gpu": 4, resource.Pods: 20},
	}}
	c.changed("node " + name)
}

// changed tells the informers.
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
	o := &object{
		namespace: namespace, name: posted.Metadata.Name, uid: c.uid(), workload: workload.ID(labels[kube.WorkloadLabel]),
		attempt: attempt, stamped: posted.Metadata.Annotations[kube.EpochKey] != "", sets: read.PodSets,
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
	c.w.tell("created %s for %s attempt %d", o.name, c.w.submits.nameOf(o.workload), o.attempt)
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

// keepPods is KubeRay: it makes the pods that are missing, gated as the template
// says.
func (c *cluster) keepPods(key string, o *object) {
	if c.objects[key] != o {
		return
	}
	most := 1 + c.w.random.IntN(8) // it need not make all at once
	most = c.podsLeft(o.namespace, most)
	for _, set := range o.sets {
		have := len(c.podsOf(func(p *pod) bool { return p.owner == o.uid && p.set == set.Name && !p.deleting }))
		for ; have < set.Count && most > 0; have, most = have+1, most-1 {
			o.made++
			p := &pod{
				namespace: o.namespace, uid: c.uid(), workload: o.workload, attempt: o.attempt, set: set.Name, owner: o.uid, ownerName: o.name,
				requests: set.Template.Requests, gated: o.stamped,
			}
			p.name = o.name + "-" + p.uid
			c.pods[p.namespace+"/"+p.name] = p
			c.changed("pod " + p.namespace + "/" + p.name)
			c.schedule(p)
		}
		c.dropPods(o, set)
	}
	c.w.check.grown(o)
	c.w.after(c.w.between(500*time.Millisecond, 2*time.Second), func() { c.keepPods(key, o) })
}

// schedule is the scheduler: it binds a pod that has no gate where it is pinned,
// when it fits.
func (c *cluster) schedule(p *pod) {
	key := p.namespace + "/" + p.name
	if p.gated || p.node != "" || p.deleting || c.pods[key] != p {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[name]
		if p.hostname != "" && p.hostname != name || n.Cordoned || !n.Ready || len(c.overCommitted(name, p.requests)) > 0 {
			continue
		}
		p.node = name
		c.w.check.bound(p)
		c.changed("pod " + key)
		c.w.after(c.w.between(50*time.Millisecond, 2*time.Second), func() { c.run(p) })
		return
	}
	c.w.after(time.Second, func() { c.schedule(p) })
}

// run is the kubelet: it makes a bound pod ready.
func (c *cluster) run(p *pod) {
	n := c.nodes[p.node]
	if c.pods[p.namespace+"/"+p.name] != p || p.ready || n == nil {
		return
	}
	if !n.Ready {
		c.w.after(time.Second, func() { c.run(p) })
		return
	}
	if p.ready = !p.deleting; p.ready {
		c.w.check.readied(p)
	}
	c.changed("pod " + p.namespace + "/" + p.name)
}

// overCommitted names the resources of a node that are not enough for what is bound
// there and one more.
func (c *cluster) overCommitted(node string, more resource.List) []resource.Name {
	free := c.nodes[node].Allocatable.Minus(more)
	for _, p := range c.pods {
		if p.node == node {
			free = free.Minus(p.requests)
		}
	}
	var lacking []resource.Name
	for _, name := range free.Names() {
		if free[name] < 0 {
			lacking = append(lacking, name)
		}
	}
	return lacking
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

// deletePod ends a pod after its grace; by force at once.
func (c *cluster) deletePod(p *pod, force bool) {
	key := p.namespace + "/" + p.name
	if c.pods[key] != p {
		return
	}
	gone := func() {
		if c.pods[key] == p {
			delete(c.pods, key)
			c.changed("pod " + key)
		}
	}
	n := c.nodes[p.node]
	switch {
	case force || p.node == "" || n == nil:
		gone()
	case !p.deleting:
		grace := c.w.between(100*time.Millisecond, 5*time.Second)
		p.deleting, p.ready, p.goneBy = true, false, c.w.now.Add(grace)
		c.changed("pod " + key)
		c.w.after(grace, func() { c.finish(p, gone) })
	}
}

// finish waits for a kubelet that does not answer.
func (c *cluster) finish(p *pod, gone func()) {
	if n := c.nodes[p.node]; n != nil && !n.Ready {
		c.w.after(time.Second, func() { c.finish(p, gone) })
		return
	}
	gone()
}

func (c *cluster) podsOf(match func(*pod) bool) []*pod {
	var all []*pod
	for _, p := range c.pods {
		if match(p) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *pod) int { return cmp.Compare(a.name, b.name) })
	return all
}
