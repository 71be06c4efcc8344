package scenario

import (
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// Step is an event, or none, and what is expected after it.
type Step struct {
	// Note is for the reader.
	Note string `json:"say,omitempty"`

	Submit []Gang   `json:"submit,omitempty"`
	End    []string `json:"end,omitempty"`  // the jobs of these workloads succeed
	Fail   []string `json:"fail,omitempty"` // the jobs of these workloads fail
	Cancel []string `json:"cancel,omitempty"`
	// Checkpoint says that these workloads have saved their work.
	Checkpoint []string `json:"checkpoint,omitempty"`
	// Gone says that the pods of these workloads are gone, with podsGo "when said".
	Gone []string `json:"gone,omitempty"`
	// LosePod removes a pod of each of these workloads; nothing replaces it.
	LosePod []string `json:"losePod,omitempty"`

	AddNodes    []NodeGroup `json:"addNodes,omitempty"`
	RemoveNodes []string    `json:"removeNodes,omitempty"`
	Cordon      []string    `json:"cordon,omitempty"`
	Uncordon    []string    `json:"uncordon,omitempty"`
	NotReady    []string    `json:"notReady,omitempty"`
	Ready       []string    `json:"ready,omitempty"`
	// Pass lets so much time pass.
	Pass Scalar `json:"pass,omitempty"`

	Expect *Expect `json:"expect,omitempty"`
}

// Expect is what a step is expected to lead to.
type Expect struct {
	// Admitted are all workloads that this step admits.
	Admitted []Admitted `json:"admitted,omitempty"`
	// Evicted are all workloads that this step evicts.
	Evicted []Evicted `json:"evicted,omitempty"`
	// Rejected are all submissions of this step that are refused.
	Rejected []Rejected `json:"rejected,omitempty"`
	// Waiting are workloads that wait after the step; others may, too.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Running are workloads that have been started and have not ended after the
	// step; others may have, too.
	Running []string `json:"running,omitempty"`
	// Ended are workloads that are over after the step, by phase.
	Ended map[string]workload.Phase `json:"ended,omitempty"`
}

// Admitted is an expected admission. It may be written as the name alone.
type Admitted struct {
	Name string `json:"name"`
	// Cluster on which it is; any when empty.
	Cluster string `json:"cluster,omitempty"`
	// Nodes are those that hold its pods, and no others; any when empty.
	Nodes []string `json:"nodes,omitempty"`
	// Pods are the numbers of pods that pod sets start with; any when empty.
	Pods map[string]int `json:"pods,omitempty"`
}

// Evicted is an expected eviction. It may be written as the name alone.
type Evicted struct {
	Name     string              `json:"name"`
	Because  workload.ReasonKind `json:"because,omitempty"`
	Contains []string            `json:"says,omitempty"`
}

// Waiting is a workload that is expected to wait. It may be written as the name
// alone.
type Waiting struct {
	Name    string              `json:"name"`
	Because workload.ReasonKind `json:"because,omitempty"`
	// Contains are texts in the reason.
	Contains []string `json:"says,omitempty"`
}

// Rejected is a submission that is expected to be refused.
type Rejected struct {
	Name     string   `json:"name"`
	Contains []string `json:"says,omitempty"`
}

// happening is one of the things that may happen in a step.
type happening struct {
	what  string // as in the file
	names []string
}

// ofWorkloads returns the events that name workloads, in the order of the fields.
func (s *Step) ofWorkloads() []happening {
	return []happening{{"end", s.End}, {"fail", s.Fail}, {"cancel", s.Cancel}, {"checkpoint", s.Checkpoint}, {"gone", s.Gone}, {"losePod", s.LosePod}}
}

// events returns what happens in the step, in the order of the fields.
func (s *Step) events() []happening {
	var all []happening
	add := func(what string, names []string) {
		if len(names) > 0 {
			all = append(all, happening{what, names})
		}
	}
	var submitted, added []string
	for i := range s.Submit {
		submitted = append(submitted, s.Submit[i].Name)
	}
	for i := range s.AddNodes {
		added = append(added, s.AddNodes[i].Name)
	}
	add("submit", submitted)
	for _, e := range s.ofWorkloads() {
		add(e.what, e.names)
	}
	add("addNodes", added)
	add("removeNodes", s.RemoveNodes)
	add("cordon", s.Cordon)
	add("uncordon", s.Uncordon)
	add("notReady", s.NotReady)
	add("ready", s.Ready)
	if s.Pass != "" {
		all = append(all, happening{"pass", []string{string(s.Pass)}})
	}
	return all
}

func (e happening) String() string { return e.what + " " + strings.Join(e.names, ", ") }
