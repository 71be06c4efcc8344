package certificate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// What every document has about itself.
const (
	APIVersion = "muster.dev/v1"
	Kind       = "DoesNotFit"
)

// Bounds of a document, of which a verifier may believe nothing.
const (
	MaxSize     = 1 << 20 // bytes of JSON
	maxClasses  = 1 << 14 // of all clusters
	maxNodes    = 1 << 20 // of all clusters
	maxPods     = 1 << 20
	maxClusters = 256
	maxFlavors  = 1024
	maxOptions  = 64 // combinations of flavors that Muster tries
	maxAmount   = 1 << 59
)

// Document is a proof that a workload cannot start now: for each combination of flavors
// that its queue offers, either quota is lacking, or every cluster lacks places. It
// needs no knowledge of Muster's state.
//
// Nodes are counted by class: nodes that are alike to this workload are one entry.
// Names of nodes, of their domains and of what the workload does not name itself are
// replaced.
type Document struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Workload   workload.ID `json:"workload"`
	// PodSets is the demand.
	PodSets []workload.PodSet `json:"podSets"`
	// Flavors are those of Choices.
	Flavors []Flavor `json:"flavors,omitempty"`
	// Choices has what the queue offers to each pod set that gets flavors.
	Choices  []Choice  `json:"choices,omitempty"`
	Clusters []Cluster `json:"clusters"`
	// Alternatives has one entry for each combination of Choices.
	Alternatives []Alternative `json:"alternatives"`
}

// Flavor is what a flavor adds to the pods that are given it.
type Flavor struct {
	Name       string            `json:"name"`
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// Levels are the labels of the flavor's Topology, the highest level first.
	Levels      []string              `json:"levels,omitempty"`
	Tolerations []workload.Toleration `json:"tolerations,omitempty"`
}

// Choice lists the flavors that a pod set may be given, by resource.
type Choice struct {
	PodSet  string                     `json:"podSet"`
	Options []map[resource.Name]string `json:"options"`
}

// Cluster has the nodes on which the workload may be.
type Cluster struct {
	Name    string  `json:"name"`
	Classes []Class `json:"classes"`
	// NotOffered are the Flavors of the document that the cluster does not offer.
	NotOffered []string `json:"notOffered,omitempty"`
}

// Class is a number of nodes that are alike to the workload.
type Class struct {
	Nodes int `json:"nodes"`
	// Name stands for the name of the nodes where the workload asks for names.
	Name     string            `json:"name,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Taints   []capacity.Taint  `json:"taints,omitempty"`
	Closed   bool              `json:"closed,omitempty"` // not ready, or drained
	Cordoned bool              `json:"cordoned,omitempty"`
	// Free is what each node has free of what the workload requests. More than all pods
	// together request is left out.
	Free resource.List `json:"free,omitempty"`
	// PortsInUse are the host ports of the workload that are in use on each node.
	PortsInUse []workload.HostPort `json:"portsInUse,omitempty"`
}

// Alternative refutes one combination of flavors: by Quota, or else by one argument for
// each cluster.
type Alternative struct {
	Flavors   []workload.PodSetFlavors `json:"flavors,omitempty"`
	Quota     *Bound                   `json:"quota,omitempty"`
	Arguments []Argument               `json:"arguments,omitempty"`
}

// Bound reports that the pods request more than the queue may use.
type Bound struct {
	Flavor    string        `json:"flavor"`
	Resource  resource.Name `json:"resource"`
	Asked     int64         `json:"asked"`
	Available int64         `json:"available"`
}

// The proofs that a document has beside those of package placement. The first two split a rule
// of topology into its domains, so that a large cluster needs no search.
const (
	// Divided: the pod sets must be in one domain of Key, and each domain lacks room
	// for one of them, or some resource for all.
	Divided placement.Proof = "divided"
	// Sliced: the domains of Key have room for fewer slices of the one pod set than it
	// has.
	Sliced placement.Proof = "sliced"
	// NotOffered: the pod sets are given a flavor that the cluster does not offer.
	NotOffered placement.Proof = "notOffered"
)

// Argument is why these pod sets have no places in a cluster.
type Argument struct {
	Cluster  string          `json:"cluster"`
	Proof    placement.Proof `json:"proof"`
	PodSets  []string        `json:"podSets"`
	Room     int             `json:"room,omitempty"`     // counted: pods, sliced: slices that there is room for
	Resource resource.Name   `json:"resource,omitempty"` // summed
	Asked    int64           `json:"asked,omitempty"`    // summed: of Resource, by the pod sets
	Free     int64           `json:"free,omitempty"`     // summed: of Resource, on nodes that take any of their pods
	Key      string          `json:"key,omitempty"`      // divided, sliced
	Flavor   string          `json:"flavor,omitempty"`   // notOffered
}

// Read reads a document, or one that is the field "certificate" of a larger JSON object
// such as an explanation or the data of an event. It reads at most twice MaxSize bytes.
func Read(from io.Reader) (*Document, error) {
	content, err := io.ReadAll(io.LimitReader(from, 2*MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	if len(content) > 2*MaxSize {
		return nil, fmt.Errorf("the file has more than %d bytes; no certificate is as large", 2*MaxSize)
	}
	type holder struct {
		Certificate json.RawMessage `json:"certificate"`
	}
	var around struct {
		holder
		Data holder `json:"data"`
	}
	if err := json.Unmarshal(content, &around); err != nil {
		return nil, fmt.Errorf("the file is not a JSON object: %w", err)
	}
	for _, found := range []json.RawMessage{around.Data.Certificate, around.Certificate} {
		if len(found) > 0 {
			content = found
		}
	}
	if len(content) > MaxSize {
		return nil, fmt.Errorf("the certificate has %d bytes; want at most %d", len(content), MaxSize)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	d := &Document{}
	if err := decoder.Decode(d); err != nil {
		return nil, fmt.Errorf("the file has no certificate that this version reads: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has data after the certificate; want one JSON document")
	}
	return d, nil
}
