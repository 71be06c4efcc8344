package workload

import (
	"strconv"
	"time"
)

// PodCount is a number of pods of a pod set.
type PodCount struct {
	PodSet string `json:"podSet"`
	Pods   int    `json:"pods"`
}

// Provisioning is a request for nodes, and what came of those before it; and what AdmissionChecks
// were asked.
type Provisioning struct {
	// Number is in the name of the request. No two requests of a workload have the same; 0 is
	// that of none.
	Number int `json:"number"`
	// Open: the request exists, or is to be created. All below is of an open request.
	Open    bool   `json:"open,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// Name of the ProvisioningRequest, and the AdmissionCheck that it is for.
	Name  string `json:"name,omitempty"`
	Check string `json:"check,omitempty"`
	// Flavors by which quota is reserved.
	Flavors []PodSetFlavors `json:"flavors,omitempty"`
	Pods    []PodCount      `json:"pods,omitempty"`
	// Class, Parameters and Merge (podSetMergePolicy) are of the configuration as it was then, and
	// so is NodeLabels (podSetUpdates): the detail of the request that is the value of each label
	// by which its pods choose their nodes.
	Class      string            `json:"class,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Merge      string            `json:"merge,omitempty"`
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// Updates are what the pods have got by that.
	Updates []PodSetUpdate `json:"podSetUpdates,omitempty"`
	// Since is when it was made.
	Since time.Time `json:"since,omitzero"`
	// ReadySince is when the nodes were reported to be there; zero before.
	ReadySince time.Time `json:"readySince,omitzero"`
	// SettlesFrom is when the time for its places on these nodes began again last, after a silence
	// of the cluster; zero for never.
	SettlesFrom time.Time `json:"settlesFrom,omitzero"`
	// Failures counts the requests that have failed since the last admission.
	Failures int `json:"failures,omitempty"`
	// Tried are the flavors by which nodes were asked for in vain since then, where the queue
	// goes on to the next.
	Tried [][]PodSetFlavors `json:"tried,omitempty"`
	// TriedClusters are those in which nodes were asked for in vain since then, and by what.
	TriedClusters []TriedCluster `json:"triedClusters,omitempty"`
	// TriedSince is when the last of these was given up.
	TriedSince time.Time `json:"triedSince,omitzero"`
	// Checks are the AdmissionChecks that it was put to last; nil before.
	Checks *Checks `json:"checks,omitempty"`
}

// TriedCluster is a cluster in which nodes were asked for in vain, by these flavors.
type TriedCluster struct {
	Cluster string          `json:"cluster"`
	Flavors []PodSetFlavors `json:"flavors,omitempty"`
}

// Kueue's values of podSetMergePolicy: pod sets share a PodTemplate when their templates are equal,
// or when they are equal in what nodes are chosen by.
const (
	IdenticalPodTemplates = "IdenticalPodTemplates"
	IdenticalScheduling   = "IdenticalWorkloadSchedulingRequirements"
)

// SettlesSince is since when the workload waits for its places on nodes that have come; zero for not
// yet.
func (p *Provisioning) SettlesSince() time.Time {
	if p.SettlesFrom.After(p.ReadySince) {
		return p.SettlesFrom
	}
	return p.ReadySince
}

// UpdatesOf lists what the request adds to the pods of a pod set.
func (p *Provisioning) UpdatesOf(podSet string) (updates []PodSetUpdate) {
	if p == nil {
		return nil
	}
	for _, update := range p.Updates {
		if update.PodSet == podSet {
			updates = append(updates, update)
		}
	}
	return updates
}

// PlaceholderClass is the provisioningClassName by which a gang shows itself as pending pods, for
// autoscalers that see nothing else.
const PlaceholderClass = "placeholder-pods.muster.dev"

// Placeholders reports whether nodes are asked for by pending pods.
func (p *Provisioning) Placeholders() bool { return p.Class == PlaceholderClass }

// DeadlineParameter is for how many seconds a gang of PlaceholderClass shows itself.
const DeadlineParameter = "deadlineSeconds"

// defaultShown is for how long a gang shows itself without that parameter: an autoscaler gives
// a new node up to 15 minutes to come.
const defaultShown = 15 * time.Minute

// ShownUntil is when a gang ends to show itself as pending pods.
func (p *Provisioning) ShownUntil() time.Time {
	if seconds, err := strconv.Atoi(p.Parameters[DeadlineParameter]); err == nil && seconds > 0 {
		return p.Since.Add(time.Duration(seconds) * time.Second)
	}
	return p.Since.Add(defaultShown)
}
