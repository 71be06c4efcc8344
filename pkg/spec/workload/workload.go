package workload

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// ID identifies a workload for ever. It is derived from the source and id of
// the submission (event.WorkloadID), so the same submission is always the same
// workload.
type ID string

// Kinds of workloads: of the object that is created. An AppWrapper has several objects, not
// all of which are of Ray.
const (
	KindRayCluster = "RayCluster"
	KindRayJob     = "RayJob"
	KindRayService = "RayService"
	KindAppWrapper = "AppWrapper"
)

// Workload is one submitted unit of work, normalised: what is created, where,
// on behalf of which queue, and the pods it will consist of.
type Workload struct {
	ID        ID       `json:"id"`
	Queue     string   `json:"queue"`
	Namespace string   `json:"namespace,omitempty"` // empty until the queue's default is filled in
	Kind      string   `json:"kind"`                // "RayCluster", "RayJob", "RayService" or "AppWrapper"
	Name      string   `json:"name"`
	Priority  int32    `json:"priority,omitempty"`
	Digest    string   `json:"digest"` // of the submitted content; distinguishes a repeated submission from a changed one
	PodSets   []PodSet `json:"podSets"`
	Life      Life     `json:"life,omitzero"`
	// Submitter is the name of the submitter, from the connection and never from the
	// message: "http/NAME", "nats/USER", "kubernetes/CLUSTER/USER"; "nats" for a client
	// that NATS lets publish on a subject without a user.
	Submitter string `json:"submitter,omitempty"`
}

// Title is what people call the workload: its name with its namespace, or its id
// where it has no name.
func (w Workload) Title() string {
	switch {
	case w.Name == "":
		return string(w.ID)
	case w.Namespace == "":
		return w.Name
	}
	return w.Namespace + "/" + w.Name
}

// Pods returns the number of pods of the gang.
func (w Workload) Pods() int {
	pods := 0
	for _, set := range w.PodSets {
		pods += set.Count
	}
	return pods
}

// Interdependent reports whether the places of some pods decide where others may
// be, so that one alone cannot be moved.
func (w Workload) Interdependent() bool {
	return slices.ContainsFunc(w.PodSets, func(set PodSet) bool {
		t := set.Template
		return len(t.Together)+len(t.Apart)+len(t.Spread) > 0 || set.Topology != nil && set.Topology.SliceSize > 1
	})
}

// Requests returns the sum of the requests of all pods of the gang.
func (w Workload) Requests() resource.List {
	sum := resource.List{}
	for _, set := range w.PodSets {
		sum = sum.Plus(set.Template.Requests.Times(int64(set.Count)))
	}
	return sum
}

// Requested is what all pods together request of one resource.
func (w Workload) Requested(name resource.Name) int64 {
	sum := int64(0)
	for i := range w.PodSets {
		set := &w.PodSets[i]
		sum = resource.SaturatingAdd(sum, resource.SaturatingMul(set.Template.Requests[name], int64(set.Count)))
	}
	return sum
}

// Roles of pod sets, as Ray names them.
const (
	RoleHead      = "head"
	RoleWorker    = "worker"
	RoleSubmitter = "submitter" // KubeRay's submitter pod of a RayJob; comes after the others
)

// PodSet is a number of pods that are alike.
type PodSet struct {
	Name  string `json:"name"` // unique in the workload; KubeRay's group name, or "submitter"
	Role  string `json:"role"`
	Count int    `json:"count"`
	// Later is how many of Count are not created with the others: they have a place
	// from the start, and are created when Ray's autoscaler asks for them.
	Later int `json:"later,omitempty"`
	// Resized is the difference of Count from the submitted number: the set has grown
	// or shrunk since its admission. A new attempt begins with the submitted number.
	Resized int `json:"resized,omitempty"`
	// MinCount is the fewest pods with which the set may start, as in Kueue's partial
	// admission; zero when it starts with Count.
	MinCount int `json:"minCount,omitempty"`
	// Step is the number of pods of a replica, zero for one: a set that starts with fewer
	// pods has whole replicas.
	Step     int      `json:"step,omitempty"`
	Template Template `json:"template"`
	// Group is the name of the pod-set group of which the set is; empty for none. The sets
	// of a group get the same flavors.
	Group string `json:"group,omitempty"`
	// Topology is nil when the set's pods may be anywhere.
	Topology *Topology `json:"topology,omitempty"`
	// Clusters selects the clusters where the set may be; empty for all. A gang is in one
	// that all of its sets select.
	Clusters ClusterSelector `json:"clusters,omitempty"`
	// PreferClusters selects the clusters that the set prefers among those where it fits now;
	// empty for none. A gang prefers those that all of its sets prefer that prefer any.
	PreferClusters ClusterSelector `json:"preferClusters,omitempty"`
	// Kinds are those of the objects in an AppWrapper, sorted; its first pod set has them. A
	// cluster that does not serve all of them cannot create it. See Workload.Needs.
	Kinds []ObjectKind `json:"kinds,omitempty"`
}

// AtStart returns how many pods come into being at once; with them the gang is
// complete.
func (s PodSet) AtStart() int { return min(s.Count, s.Count-s.Resized-s.Later) }

// Spare returns how many replicas of the set may be missing at its start.
func (s PodSet) Spare() int {
	if s.MinCount <= 0 || s.MinCount >= s.Count {
		return 0
	}
	return (s.Count - s.MinCount) / max(1, s.Step)
}

// Template has the parts of a pod that its place depends on.
type Template struct {
	// Requests is the effective request of one pod, one pod slot included
	// (resource.Pods: 1).
	Requests resource.List `json:"requests"`
	// Unset is how the request depends on the defaults of the namespace.
	Unset Unset `json:"unset,omitempty"`
	// Asks has the containers of the pod, and of a pod that comes after it in its place;
	// without them what LimitRanges demand of the pod is not known.
	Asks         [][]ContainerAsk  `json:"asks,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity is the required node affinity: one of the terms must match.
	Affinity    []NodeTerm   `json:"affinity,omitempty"`
	Tolerations []Toleration `json:"tolerations,omitempty"`
	HostPorts   []HostPort   `json:"hostPorts,omitempty"`
	// Together, Apart and Spread are about the gang's own pods.
	Together []Together `json:"together,omitempty"`
	Apart    []Apart    `json:"apart,omitempty"`
	Spread   []Spread   `json:"spread,omitempty"`
}

// NodeTerm matches a node when all its requirements do
// (Kubernetes' NodeSelectorTerm).
type NodeTerm struct {
	Labels []Requirement `json:"labels,omitempty"`
	// Fields are requirements on node fields; Kubernetes supports metadata.name.
	Fields []Requirement `json:"fields,omitempty"`
}

// Requirement is one condition on a label or field of a node. Operator is one
// of In, NotIn, Exists, DoesNotExist, Gt, Lt.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Toleration lets a pod onto nodes with matching taints, as in Kubernetes: an
// empty key with operator Exists tolerates everything, an empty effect matches
// every effect.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"` // "Exists", "Equal" or empty for Equal
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// Placement is a reservation of the plan: a number of pods of a pod set on a node.
type Placement struct {
	PodSet string `json:"podSet"`
	Node   string `json:"node"`
	Pods   int    `json:"pods"`
	// Hostname is the node's kubernetes.io/hostname label where it differs from
	// its name; that label is what pins a pod.
	Hostname string `json:"hostname,omitempty"`
	// Domain of the node at the slice level of the pod set's topology; pods of a
	// slice go to one domain. It is filled in for the dispatcher, which places the pods.
	Domain string `json:"domain,omitempty"`
}

// Times are the moments of a workload's life; zero where not reached. They are
// of the last attempt, but for Submitted.
type Times struct {
	Submitted  time.Time `json:"submitted"`
	Admitted   time.Time `json:"admitted,omitzero"`
	Dispatched time.Time `json:"dispatched,omitzero"`
	Running    time.Time `json:"running,omitzero"`
	Finished   time.Time `json:"finished,omitzero"`
}
