package quota

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
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

// Cost has what one unit of a resource costs in an hour, in thousandths of any currency: a
// core, a GiB of memory or storage, one of everything else. In JSON a price is a quantity,
// such as "2.5". What it does not name is free.
type Cost map[resource.Name]int64

// maxPrice bounds a price, so that costs of whole gangs can be compared: a million.
const maxPrice = 1_000_000_000

// UnmarshalJSON reads prices.
func (c *Cost) UnmarshalJSON(data []byte) error {
	var written map[resource.Name]json.RawMessage
	if err := json.Unmarshal(data, &written); err != nil {
		return fault.At("", "%s: want an object with prices by resource, such as {nvidia.com/gpu: \"2.5\"}", data)
	}
	read := Cost{}
	var faults fault.List
	for _, name := range slices.Sorted(maps.Keys(written)) {
		price, err := amount(resource.CPU, written[name]) // thousandths, as of CPU
		switch {
		case err != nil || price == nil || *price < 0 || *price > maxPrice:
			faults.Add(fault.Key("", string(name)), "%s: want a price from 0 to 1000000, such as 2.5", written[name])
		default:
			read[name] = *price
		}
	}
	*c = read
	return faults.Err()
}

// MarshalJSON writes prices as quantities.
func (c Cost) MarshalJSON() ([]byte, error) {
	written := map[resource.Name]string{}
	for name, price := range c {
		written[name] = resource.Format(resource.CPU, price)
	}
	return json.Marshal(written)
}

// Of returns what the pods cost in an hour, in thousandths, rounded down for each pod set
// and resource.
func (c Cost) Of(podSets []workload.PodSet) int64 {
	sum := int64(0)
	for name, price := range c {
		for _, set := range podSets {
			sum = add(sum, priceOf(name, set.Template.Requests[name], price, int64(set.Count)))
		}
	}
	return sum
}

// priceOf is exact up to a GiB and a core, and saturates: amounts of a manifest are bounded
// only by what fits into an int64.
func priceOf(name resource.Name, amount, price, pods int64) int64 {
	unit := int64(1)
	switch {
	case name == resource.CPU:
		unit = 1000
	case resource.InBytes(name):
		unit = 1 << 30
	}
	whole, part := amount/unit, amount%unit
	each := add(multiply(whole, price), part*price/unit) // part < 2^30, price <= 2^30
	return multiply(each, pods)
}

// multiply saturates.
func multiply(a, b int64) int64 {
	high, low := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// ClusterCordon is an operator's order to admit nothing in a cluster until it is deleted.
// With Drain what was admitted is evicted, and starts again elsewhere.
type ClusterCordon struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
	By    string    `json:"by"`
	Why   string    `json:"why,omitempty"`
	Drain bool      `json:"drain,omitempty"`
}

// Message says that the cluster is cordoned or drained.
func (c ClusterCordon) Message() string {
	state := "cordoned"
	if c.Drain {
		state = "drained"
	}
	return since(fmt.Sprintf("cluster %q is %s", c.Name, state), c.Since, c.By, c.Why)
}

// Cluster returns the description of a cluster; nil when there is none.
func (t *Tree) Cluster(name string) *Cluster { return t.clusters[name] }

// Cordon returns the order that keeps gangs from a cluster; nil when no operator cordons it.
func (t *Tree) Cordon(cluster string) *ClusterCordon { return t.cordons[cluster] }

// ChoosesClusters reports whether any cluster is described or cordoned.
func (t *Tree) ChoosesClusters() bool { return len(t.clusters)+len(t.cordons) > 0 }

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
	maxClusterPrices = 100
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
		if len(cl.Cost) > maxClusterPrices {
			v.faults.Add(path+".costPerHour", "has %d prices; want at most %d", len(cl.Cost), maxClusterPrices)
		}
		for _, name := range slices.Sorted(maps.Keys(cl.Cost)) {
			v.line(path+".costPerHour", string(name), maxSelectorText)
		}
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
	}
}

func (v *validation) clusterName(path, name string, seen map[string]string) {
	v.name(path, name, seen)
	if name != "" && !workload.ValidName(name) {
		v.faults.Add(path+".name", "%q: want lower-case letters, digits and dashes, at most 63", name)
	}
}
