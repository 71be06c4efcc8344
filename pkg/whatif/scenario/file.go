package scenario

import (
	"encoding/json"
	"time"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// File is a scenario as it is written.
type File struct {
	// Name is in a sentence what the scenario shows.
	Name string `json:"name"`
	// Start is the time at which it begins, by default 2026-01-01 08:00 UTC.
	Start time.Time `json:"start,omitzero"`
	// NodeGrace is how long a node may be not ready before gangs on it are
	// evicted, one minute by default.
	NodeGrace Scalar `json:"nodeGrace,omitempty"`
	// PodsGo is "at once" (the default) or "when said": whether pods that shall go
	// are gone at once or with an event "gone".
	PodsGo string `json:"podsGo,omitempty"`

	Nodes []NodeGroup `json:"nodes,omitempty"`
	// File is queues, and the policy: resourceFlavors, cohorts, clusterQueues,
	// localQueues, workloadPriorityClasses, fairSharing, admissionFairSharing.
	queuesfile.File

	// PastUse is what queues used before the scenario begins.
	PastUse []PastUse `json:"pastUse,omitempty"`
	Running []Gang    `json:"running,omitempty"`
	Waiting []Gang    `json:"waiting,omitempty"`
	Steps   []Step    `json:"steps,omitempty"`

	// given: the queues are those of a file that queue-manager takes, and no others.
	given bool
	// source is what was read, for the lines of faults that are found while the
	// scenario is played.
	source *yaml.Node
}

// Values of PodsGo.
const (
	PodsGoAtOnce = "at once"
	PodsGoOnStep = "when said"
)

// NodeGroup is a number of like nodes, as in the fleet files of the dev cluster.
type NodeGroup struct {
	// Name is a pattern: a run of zeros in braces is the number of the node, with
	// at least as many digits.
	Name        string            `json:"name"`
	Count       *int              `json:"count,omitempty"` // 1 when left out
	Cluster     string            `json:"cluster,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Taints      []capacity.Taint  `json:"taints,omitempty"`
	Allocatable Amounts           `json:"allocatable"`
	// Unmanaged is what pods that Muster does not manage use of each node.
	Unmanaged Amounts `json:"unmanaged,omitempty"`
	Cordoned  bool    `json:"cordoned,omitempty"`
	NotReady  bool    `json:"notReady,omitempty"`
}

// Gang is a workload, given by its pods or by the manifest of a Ray object.
type Gang struct {
	// Name of the workload; for a manifest its own by default.
	Name string `json:"name,omitempty"`
	// Queue may be left out when there is one only.
	Queue         string `json:"queue,omitempty"`
	Namespace     string `json:"namespace,omitempty"`
	Priority      *int32 `json:"priority,omitempty"`
	PriorityClass string `json:"priorityClass,omitempty"`
	// RunTime is how long it is declared to run.
	RunTime Scalar `json:"runTime,omitempty"`

	Pods     []PodSet        `json:"pods,omitempty"`
	Manifest json.RawMessage `json:"manifest,omitempty"`

	// Places, of a running workload, say where its pods are: for each pod set the
	// number of pods on each node. Without them a decision places it.
	Places map[string]map[string]int `json:"places,omitempty"`
	// Age, of a running workload, is how long ago it was admitted.
	Age Scalar `json:"age,omitempty"`
}

// PodSet is a number of pods that are alike.
type PodSet struct {
	Name         string                `json:"name"`
	Count        *int                  `json:"count,omitempty"`    // 1 when left out
	MinCount     int                   `json:"minCount,omitempty"` // with how many it may start at least
	Requests     Amounts               `json:"requests"`
	NodeSelector map[string]string     `json:"nodeSelector,omitempty"`
	Affinity     []workload.NodeTerm   `json:"affinity,omitempty"`
	Tolerations  []workload.Toleration `json:"tolerations,omitempty"`
}
