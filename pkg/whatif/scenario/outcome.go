package scenario

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Outcome is all that happened in a scenario.
type Outcome struct {
	Name string `json:"name"`
	// Passed means that something was expected, and all of it happened.
	Passed bool `json:"passed"`
	// Checked is the number of steps that expect something.
	Checked int `json:"checked"`
	// Differences is how many there are, in all steps.
	Differences int `json:"differences"`
	// Steps of the file, with the setting up as number 0.
	Steps []StepOutcome `json:"steps"`
	// Explained, by RunExplained, are all that wait after the last step.
	Explained []workload.Explanation `json:"explained,omitempty"`
}

// StepOutcome is what happened in a step, and what was expected otherwise.
type StepOutcome struct {
	Step     int               `json:"step"`
	Note     string            `json:"say,omitempty"`
	Event    string            `json:"event,omitempty"`
	At       time.Time         `json:"at"` // after the step
	Admitted []AdmittedOutcome `json:"admitted,omitempty"`
	Evicted  []ReasonOutcome   `json:"evicted,omitempty"`
	Ended    []ReasonOutcome   `json:"ended,omitempty"`
	Rejected []ReasonOutcome   `json:"rejected,omitempty"`
	// Unexpected are those that were rejected in a step that expects nothing: what the scenario
	// shows may be without them.
	Unexpected []string `json:"unexpected,omitempty"`
	// Waiting are all that wait after the step, in the order of submission.
	Waiting []ReasonOutcome `json:"waiting,omitempty"`
	// Differences from what was expected, each in a sentence.
	Differences []string `json:"differences,omitempty"`
}

// AdmittedOutcome is an admission with its places.
type AdmittedOutcome struct {
	Name       string               `json:"name"`
	Cluster    string               `json:"cluster"`
	Placements []workload.Placement `json:"placements"`
}

// Nodes returns the nodes on which it has pods, sorted, each once.
func (a AdmittedOutcome) Nodes() []string {
	seen := map[string]bool{}
	for _, p := range a.Placements {
		seen[p.Node] = true
	}
	return sortedKeys(seen)
}

// Pods returns the number of pods of each pod set.
func (a AdmittedOutcome) Pods() map[string]int {
	pods := map[string]int{}
	for _, p := range a.Placements {
		pods[p.PodSet] += p.Pods
	}
	return pods
}

// ReasonOutcome is a workload with the reason of its state.
type ReasonOutcome struct {
	Name   string           `json:"name"`
	Phase  workload.Phase   `json:"phase,omitempty"`
	Reason *workload.Reason `json:"reason,omitempty"`
}

func (r ReasonOutcome) kind() workload.ReasonKind {
	if r.Reason == nil {
		return ""
	}
	return r.Reason.Kind
}

// isBecause reports whether the reason is of a kind. What never fits lacks places or quota as
// well, so scenarios that expect only that stay true.
func (r ReasonOutcome) isBecause(kind workload.ReasonKind) bool {
	if r.kind() != workload.ReasonNeverFits {
		return r.kind() == kind
	}
	switch kind {
	case workload.ReasonNeverFits:
		return true
	case workload.ReasonFit:
		return r.Reason.Shortage != nil
	case workload.ReasonQuota:
		return r.Reason.Quota != nil
	}
	return false
}

func (r ReasonOutcome) message() string {
	if r.Reason == nil {
		return ""
	}
	return r.Reason.Message
}
