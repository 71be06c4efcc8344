package event

import (
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Version orders the observations of one cluster's watcher: Session is the start of the
// watcher in nanoseconds since 1970, Seq counts within the session. Of two observations
// of the same thing the one with the larger version is the newer.
type Version struct {
	Session int64  `json:"session"`
	Seq     uint64 `json:"seq"`
}

// Before reports whether v is older than other.
func (v Version) Before(other Version) bool {
	if v.Session != other.Session {
		return v.Session < other.Session
	}
	return v.Seq < other.Seq
}

// NodeObserved is the present state of one node. Last value per node.
type NodeObserved struct {
	Version Version       `json:"version"`
	Node    capacity.Node `json:"node"`
	// Answers is the ReportWanted.Ask that this answers; empty when none was asked.
	Answers string `json:"answers,omitempty"`
}

// EventType implements Payload.
func (*NodeObserved) EventType() string { return "dev.muster.capacity.node.v1" }

// CloudEventSubject implements Payload.
func (e *NodeObserved) CloudEventSubject() string { return e.Node.Cluster + "/" + e.Node.Name }

// NodeRemoved reports that a node is gone. It takes the place of NodeObserved on
// the node's subject.
type NodeRemoved struct {
	Version Version `json:"version"`
	Cluster string  `json:"cluster"`
	Node    string  `json:"node"`
}

// EventType implements Payload.
func (*NodeRemoved) EventType() string { return "dev.muster.capacity.node-removed.v1" }

// CloudEventSubject implements Payload.
func (e *NodeRemoved) CloudEventSubject() string { return e.Cluster + "/" + e.Node }

// CapacitySynced lists everything that a watcher observes, after it has published all
// of it: at its start and every few minutes. What an older version reported and this
// list lacks is gone.
type CapacitySynced struct {
	Version Version       `json:"version"`
	Cluster string        `json:"cluster"`
	Nodes   []string      `json:"nodes"`
	Gangs   []workload.ID `json:"gangs"` // workloads of which pods exist
	// Namespaces means that all namespaces have been published, too. Those of earlier
	// sessions that were not published again are gone.
	Namespaces bool `json:"namespaces,omitempty"`
	// Kinds are those of which objects can be created in the cluster. Empty is unknown: the
	// watcher is of an earlier version, could not read them, or there are too many.
	Kinds []workload.ObjectKind `json:"kinds,omitempty"`
}

// MostKinds is the largest number of kinds of a cluster that is reported.
const MostKinds = 5000

// EventType implements Payload.
func (*CapacitySynced) EventType() string { return "dev.muster.capacity.synced.v1" }

// CloudEventSubject implements Payload.
func (e *CapacitySynced) CloudEventSubject() string { return e.Cluster }

// GangObserved has the observed pods of one workload. Last value per workload; no pods
// means that all are gone.
type GangObserved struct {
	Version  Version     `json:"version"`
	Cluster  string      `json:"cluster"`
	Workload workload.ID `json:"workload"`
	Pods     []GangPod   `json:"pods"`
	// Answers is the ReportWanted.Ask that this answers; empty when none was asked.
	Answers string `json:"answers,omitempty"`
	// Chains are the origins of the pods; the pods of a gang share one.
	Chains []PodChain `json:"chains,omitempty"`
}

// PodChain is the origin of pods. Labels can be forged; a chain cannot, beyond the
// pods' own namespace.
type PodChain struct {
	Namespace string `json:"namespace"`
	// Owners are the UIDs of the pod's controller, of that one's controller, and so on;
	// for a pod without a controller, its own.
	Owners []string `json:"owners"`
	// Open: the last of them may have an unknown controller.
	Open bool `json:"open,omitempty"`
}

// GangPod is one observed pod of a gang.
type GangPod struct {
	Name    string `json:"name"`
	Attempt int    `json:"attempt"`
	PodSet  string `json:"podSet"`
	// RayCluster is the RayCluster that the pod belongs to; a RayJob that KubeRay
	// tries again has another one.
	RayCluster string `json:"rayCluster,omitempty"`
	// Chain is the number of the pod's chain, from 1; 0 from a watcher that does not
	// report chains.
	Chain    int    `json:"chain,omitempty"`
	Node     string `json:"node,omitempty"` // empty while not bound
	Phase    string `json:"phase"`          // Kubernetes' pod phase
	Ready    bool   `json:"ready,omitempty"`
	Deleting bool   `json:"deleting,omitempty"`
	// ExitCode is that of a container that has ended for good, where it is not
	// zero; the largest of several.
	ExitCode int32 `json:"exitCode,omitempty"`
	// Waits is what keeps the pod from being ready: the reason for which a container
	// waits, or why the pod is not scheduled. It is empty where the status has none,
	// and for all but the first pods with the same.
	Waits    string        `json:"waits,omitempty"`
	Requests resource.List `json:"requests"` // effective, one pod slot included
}

// Holds reports whether the pod takes room on a node: it is bound and its
// containers have not all ended.
func (p GangPod) Holds() bool {
	return p.Node != "" && p.Phase != "Succeeded" && p.Phase != "Failed"
}

// EventType implements Payload.
func (*GangObserved) EventType() string { return "dev.muster.capacity.gang.v1" }

// CloudEventSubject implements Payload.
func (e *GangObserved) CloudEventSubject() string { return string(e.Workload) }
