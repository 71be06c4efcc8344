package workload

import (
	"path"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// Interfaces by which work comes; a submitter's name begins with one of them.
const (
	ByHTTP       = "http"
	ByNATS       = "nats"
	ByKubernetes = "kubernetes"
)

// Submitters is a set of submitters that may submit to a queue.
type Submitters struct {
	// Who are patterns of submitters (Workload.Submitter): in a part between two
	// slashes * stands for any characters.
	Who []string `json:"who"`
	// Namespaces that they may use; empty for all of the queue.
	Namespaces []string `json:"namespaces,omitempty"`
}

// ValidateSubmitters returns what of the list cannot be, as a fault.List.
func ValidateSubmitters(list []Submitters) error {
	var faults fault.List
	for i, s := range list {
		faults.Under("", validatePatterns(fault.Index("", i)+".who", s.Who))
	}
	return faults.Err()
}

// validatePatterns returns what of the patterns at a path cannot be, as a fault.List.
func validatePatterns(at string, patterns []string) error {
	var faults fault.List
	if len(patterns) == 0 {
		faults.Add(at, "is empty; want names such as http/alice, nats/team-a or kubernetes/CLUSTER/USER")
	}
	for j, who := range patterns {
		by, _, _ := strings.Cut(who, "/")
		if _, err := path.Match(who, ""); err != nil || !slices.Contains([]string{ByHTTP, ByNATS, ByKubernetes}, by) {
			faults.Add(fault.Index(at, j), "%q: want a name such as http/alice, nats/team-a or kubernetes/CLUSTER/USER, in which * stands for any characters", who)
		}
	}
	return faults.Err()
}

// MaySubmit reports whether the rules let a submitter submit into a namespace.
func (r Rules) MaySubmit(submitter, namespace string) bool {
	namespaces, every := r.NamespacesOf(submitter)
	return every || slices.Contains(namespaces, namespace)
}

// NamespacesOf returns the namespaces into which the rules let a submitter submit; every
// means all of them.
func (r Rules) NamespacesOf(submitter string) (namespaces []string, every bool) {
	if len(r.Submitters) == 0 {
		return nil, true
	}
	for _, s := range r.Submitters {
		if !s.matches(submitter) {
			continue
		}
		if len(s.Namespaces) == 0 {
			return nil, true
		}
		namespaces = append(namespaces, s.Namespaces...)
	}
	return namespaces, false
}

func (s Submitters) matches(submitter string) bool {
	return slices.ContainsFunc(s.Who, func(who string) bool {
		matched, err := path.Match(who, submitter)
		return err == nil && matched
	})
}
