package workload

import (
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// Demand is what waiting gangs lack that are within quota and have no places on the nodes
// that exist: more or other nodes would start them.
type Demand struct {
	// Gangs and Pods count all of them, also those left out below.
	Gangs int `json:"gangs"`
	Pods  int `json:"pods"`
	// Shapes are the equal ones of a ClusterQueue together, by submission; LeftOut counts
	// those beyond the bound.
	Shapes  []DemandedGangs `json:"shapes"`
	LeftOut int             `json:"leftOut,omitempty"`
}

// DemandedGangs are equal gangs. Each needs places for all of its pods at once.
type DemandedGangs struct {
	ClusterQueue string `json:"clusterQueue"`
	Priority     int32  `json:"priority,omitempty"`
	Gangs        int    `json:"gangs"`
	// Asked: their nodes are asked for by a ProvisioningRequest.
	Asked bool `json:"asked,omitempty"`
	// Since is when the first of them was submitted.
	Since   time.Time      `json:"since"`
	Reason  string         `json:"reason"` // of the first
	PodSets []DemandedPods `json:"podSets"`
}

// DemandedPods are the pods of a pod set of one gang.
type DemandedPods struct {
	Name string `json:"name"`
	Pods int    `json:"pods"`
	// Unplaced are those without a place, as far as the search has found out: of the pod set
	// that is the obstacle.
	Unplaced int           `json:"unplaced,omitempty"`
	Requests resource.List `json:"requests"` // of one pod
	// Flavors by resource by which nodes would start the gang. Their labels and tolerations
	// are among those below.
	Flavors      map[resource.Name]string `json:"flavors,omitempty"`
	NodeSelector map[string]string        `json:"nodeSelector,omitempty"`
	Affinity     []NodeTerm               `json:"affinity,omitempty"`
	Tolerations  []Toleration             `json:"tolerations,omitempty"`
	Topology     *Topology                `json:"topology,omitempty"`
}

// Requested sums what all pods of the shapes ask for.
func (d *Demand) Requested() resource.List {
	var sum resource.List
	for _, shape := range d.Shapes {
		for _, set := range shape.PodSets {
			sum = sum.Plus(set.Requests.Times(int64(set.Pods * shape.Gangs)))
		}
	}
	return sum
}
