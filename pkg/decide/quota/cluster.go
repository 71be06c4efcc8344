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

// Bounds of the description of a cluster.
const (
	maxClusterLabels = 64
	maxClusterQueues = 1000
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
		if len(cl.Queues) > maxClusterQueues {
			v.faults.Add(path+".queues", "has %d queues; want at most %d", len(cl.Queues), maxClusterQueues)
		}
		for j, queue := range cl.Queues {
			if queue == "" || slices.Index(cl.Queues, queue) < j {
				v.faults.Add(fault.Index(path+".queues", j), "%q is empty or a duplicate; want the names of ClusterQueues", queue)
			}
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

func (v *validation) clusterName(path, name string, seen map[string]string) {
	v.name(path, name, seen)
	if name != "" && !workload.ValidName(name) {
		v.faults.Add(path+".name", "%q: want lower-case letters, digits and dashes, at most 63", name)
	}
}
