package quota

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// Cluster describes a Kubernetes cluster among which Muster chooses. It is Muster's own: in
// Kueue a MultiKueueCluster names one. A cluster that reports nodes and is not described has
// no labels, costs nothing and takes gangs of every queue.
type Cluster struct {
	Name string `json:"name"`
	// Labels are what the selector of a workload (annotation muster.dev/clusters) selects
	// by. workload.ClusterNameKey is always there, with the name.
	Labels map[string]string `json:"labels,omitempty"`
	// Cost is the price of resources for an hour.
	Cost Cost `json:"costPerHour,omitempty"`
	// Queues are the ClusterQueues whose gangs the cluster takes; empty for all.
	Queues []string `json:"queues,omitempty"`
	// Flavors are the ResourceFlavors that the cluster offers; empty for all. A gang that is
	// given another one gets no places there.
	Flavors []string `json:"flavors,omitempty"`
}

// ClusterCordon is an operator's order to admit nothing in a cluster until it is deleted.
// With Drain what was admitted is evicted, and starts again elsewhere. With Left the cluster
// leaves: its nodes are forgotten once no gang has a place on them, and what it reports does
// not count. With Forced, too, its gangs do not wait for the removal of their pods: an
// operator knows that these are gone, or that they may be.
type ClusterCordon struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
	By    string    `json:"by"`
	Why   string    `json:"why,omitempty"`
	Drain bool      `json:"drain,omitempty"`
	// Left goes with Drain, and Forced with Left.
	Left   bool `json:"left,omitempty"`
	Forced bool `json:"forced,omitempty"`
}

// Message reports that the cluster is cordoned or drained, or leaves.
func (c ClusterCordon) Message() string {
	state := "is cordoned"
	switch {
	case c.Left:
		state = "has left"
	case c.Drain:
		state = "is drained"
	}
	return since(fmt.Sprintf("cluster %q %s", c.Name, state), c.Since, c.By, c.Why)
}

// Cluster returns the description of a cluster; nil when there is none.
func (t *Tree) Cluster(name string) *Cluster { return t.clusters[name] }

// Cordon returns the order that keeps gangs from a cluster; nil when no operator cordons it.
func (t *Tree) Cordon(cluster string) *ClusterCordon { return t.cordons[cluster] }

// ChoosesClusters reports whether any cluster is described or cordoned.
func (t *Tree) ChoosesClusters() bool { return len(t.clusters)+len(t.cordons) > 0 }

// Left reports whether a cluster has left, or leaves.
func (t *Tree) Left(cluster string) bool {
	c := t.cordons[cluster]
	return c != nil && c.Left
}

// LeftClusters are the clusters of which Left is true.
func (t *Tree) LeftClusters() map[string]bool {
	left := map[string]bool{}
	for name, c := range t.cordons {
		if c.Left {
			left[name] = true
		}
	}
	return left
}

// LeftByForce reports whether the gangs of a cluster do not wait for the removal of their pods.
func (t *Tree) LeftByForce(cluster string) bool {
	c := t.cordons[cluster]
	return c != nil && c.Forced
}

// Drains reports whether any cluster is drained.
func (t *Tree) Drains() bool { return t.drains }

// Selects reports whether a workload with the selector may run in the cluster of a name.
func (t *Tree) Selects(selector workload.ClusterSelector, name string) bool {
	var labels map[string]string
	if c := t.clusters[name]; c != nil {
		labels = c.Labels
	}
	return selector.Matches(name, labels)
}

// Takes reports whether a cluster takes gangs of a ClusterQueue.
func (t *Tree) Takes(cluster, queue string) bool {
	c := t.clusters[cluster]
	return c == nil || len(c.Queues) == 0 || slices.Contains(c.Queues, queue)
}

// NotOffered returns the first of the flavors, by name, that a cluster does not offer; empty
// when it offers all.
func (t *Tree) NotOffered(cluster string, flavors []workload.PodSetFlavors) string {
	offered := t.offered[cluster]
	if offered == nil {
		return ""
	}
	lacks := ""
	for _, set := range flavors {
		for _, flavor := range set.Flavors {
			if (lacks == "" || flavor < lacks) && !offered[flavor] {
				lacks = flavor
			}
		}
	}
	return lacks
}

// ChoosesFlavors reports whether any cluster states which flavors it offers.
func (t *Tree) ChoosesFlavors() bool { return len(t.offered) > 0 }

// offer has the tree know the flavors that a cluster states.
func (t *Tree) offer(c *Cluster) {
	if len(c.Flavors) == 0 {
		return
	}
	t.offered[c.Name] = make(map[string]bool, len(c.Flavors))
	for _, flavor := range c.Flavors {
		t.offered[c.Name][flavor] = true
	}
}

// unknownFlavors notes, for each cluster, a flavor that does not exist. It may be applied later.
func (c *Config) unknownFlavors() (notes []string) {
	known := map[string]bool{}
	for _, f := range c.Flavors {
		known[f.Name] = true
	}
	for _, cl := range c.Clusters {
		unknown := slices.DeleteFunc(slices.Clone(cl.Flavors), func(name string) bool { return known[name] })
		if len(unknown) == 0 {
			continue
		}
		more := ""
		if len(unknown) > 1 {
			more = fmt.Sprintf(" (and %d more)", len(unknown)-1)
		}
		notes = append(notes, fmt.Sprintf("cluster %q: flavors: there is no ResourceFlavor %q yet%s; apply it, or correct the name", cl.Name, unknown[0], more))
	}
	return notes
}

// Bounds of the description of a cluster.
const (
	maxClusterLabels = 64
	maxClusterNames  = 1000 // of queues, and of flavors
	maxLabel         = 63
)

func (v *validation) clusters(c *Config) {
	seen := map[string]string{}
	for i, cl := range c.Clusters {
		path := fault.Index("clusters", i)
		v.clusterName(path, cl.Name, seen)
		if len(cl.Labels) > maxClusterLabels {
			v.faults.Add(path+".labels", "has %d labels; want at most %d", len(cl.Labels), maxClusterLabels)
		}
		for _, key := range slices.Sorted(maps.Keys(cl.Labels)) {
			at := fault.Key(path+".labels", key)
			v.line(at, cl.Labels[key], maxLabel)
			if !workload.ValidSelectorKey(key) {
				v.faults.Add(at, "%q: want a key of letters, digits and the characters -_./, such as gpu or example.com/zone", key)
			}
			if key == workload.ClusterNameKey {
				v.faults.Add(at, "is the name of the cluster in every cluster; leave it out")
			}
		}
		v.prices(path, cl.Cost)
		v.clusterNames(path, "queues", "ClusterQueues", cl.Queues)
		v.clusterNames(path, "flavors", "ResourceFlavors", cl.Flavors)
		for j, name := range cl.Flavors {
			v.line(fault.Index(path+".flavors", j), name, maxSelectorText)
		}
	}
	cordoned := map[string]string{}
	for i, o := range c.ClusterCordons {
		path := fault.Index("clusterCordons", i)
		v.clusterName(path, o.Name, cordoned)
		v.order(path, "cordons the cluster", o.Since, o.By, o.Why)
		if o.Left && !o.Drain || o.Forced && !o.Left {
			v.faults.Add(path, "drain %t, left %t, forced %t: want drain with left, and left with forced", o.Drain, o.Left, o.Forced)
		}
	}
}

// clusterNames checks the names of what a cluster takes or offers. What they name may not exist
// yet.
func (v *validation) clusterNames(path, field, kind string, names []string) {
	at := path + "." + field
	if len(names) > maxClusterNames {
		v.faults.Add(at, "has %d %s; want at most %d", len(names), field, maxClusterNames)
		return
	}
	seen := make(map[string]bool, len(names))
	for j, name := range names {
		if name == "" || seen[name] {
			v.faults.Add(fault.Index(at, j), "%q is empty or a duplicate; want the names of %s", name, kind)
		}
		seen[name] = true
	}
}

func (v *validation) clusterName(path, name string, seen map[string]string) {
	v.name(path, name, seen)
	if name != "" && !workload.ValidName(name) {
		v.faults.Add(path+".name", "%q: want lower-case letters, digits and dashes, at most 63", name)
	}
}
