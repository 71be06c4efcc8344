package admission

import (
	"cmp"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Certify returns a document which proves that a waiting workload cannot start now, in
// whatever order the queue is: no combination of flavors is within quota and has places.
// Where there is none it returns why. It stops when enough returns true. The state stays as
// it is; its allowances of search are not charged.
func Certify(s *State, id workload.ID, enough func() bool) (*certificate.Document, string) {
	return s.certify(id, func(flavored *flavoredSignature, cluster string) (*placement.Certificate, string) {
		if enough() {
			return nil, "there was no time for it; ask again"
		}
		switch verdict := s.fleets[cluster].Solve(flavored.w, placement.Budget); verdict.Outcome {
		case placement.Fits:
			return nil, fmt.Sprintf("it is within quota and fits into cluster %s, so it waits for another reason", cluster)
		case placement.Unknown:
			return nil, fmt.Sprintf("whether it fits into cluster %s is undecided", cluster)
		default:
			return verdict.Certificate, ""
		}
	}, false)
}

// CertifyDecided is Certify without a search: it knows what the last decision has found,
// and has only proofs that are verified by counting. Its cost is linear in the nodes.
func CertifyDecided(s *State, id workload.ID) (*certificate.Document, string) {
	return s.certify(id, func(flavored *flavoredSignature, cluster string) (*placement.Certificate, string) {
		verdict, known := flavored.verdicts[cluster]
		if !known || verdict.Certificate == nil {
			return nil, fmt.Sprintf("whether it fits into cluster %s was not decided", cluster)
		}
		return verdict.Certificate, ""
	}, true)
}

func (s *State) certify(id workload.ID, prove func(*flavoredSignature, string) (*placement.Certificate, string), counting bool) (*certificate.Document, string) {
	w := s.waiting.Get(id)
	switch {
	case w == nil && s.started[id] != nil:
		return nil, "it has its places"
	case w == nil:
		return nil, "it does not wait"
	case w.Grows:
		return nil, "it runs, and only waits for more pods"
	}
	smallest := w.signature.smallest()
	o := s.optionsOf(w.queue, smallest)
	switch {
	case o.why != nil:
		return nil, "its queue refuses it: " + o.why.Message
	case o.cut:
		return nil, "its pod sets can have more combinations of flavors than are tried"
	}
	draft := certificate.Draft{Workload: id, PodSets: smallest.podSets, Counting: counting}
	clusters := s.clustersFor(w)
	for _, cluster := range clusters {
		draft.Clusters = append(draft.Clusters, certificate.DraftCluster{Name: cluster, Nodes: s.fleets[cluster].Views()})
	}
	for _, why := range []string{s.notSelected(w), s.beyondLimits(w)} {
		if why != "" {
			return nil, why
		}
	}
	if why := s.noKind(w); why != nil {
		return nil, why.Message
	}
	if len(clusters) == 0 {
		return nil, "no cluster has reported a node"
	}
	for _, a := range w.queue.quota.Assess(o.assignments) {
		alternative, why := s.refute(o.flavoredFor(a), a, clusters, prove)
		if why != "" {
			return nil, why
		}
		draft.Alternatives = append(draft.Alternatives, alternative)
		draft.Flavors = s.addFlavors(draft.Flavors, a.Flavors)
	}
	for i := range draft.Clusters {
		draft.Clusters[i].NotOffered = s.notOfferedOf(draft.Clusters[i].Name, draft.Flavors)
	}
	document, err := certificate.Make(draft)
	if err != nil {
		return nil, fmt.Sprintf("it cannot be made of what there is: %v", err)
	}
	return document, ""
}

// refute returns why an assignment of flavors cannot start, or why that is not known.
func (s *State) refute(flavored *flavoredSignature, a quota.Assess, clusters []string, prove func(*flavoredSignature, string) (*placement.Certificate, string)) (certificate.DraftAlternative, string) {
	alternative := certificate.DraftAlternative{Flavors: a.Flavors}
	if a.Over != nil {
		alternative.Quota = &certificate.Bound{Flavor: a.Over.Flavor, Resource: a.Over.Resource, Asked: a.Over.Amount, Available: max(0, a.Over.Available)}
		return alternative, ""
	}
	for _, cluster := range clusters {
		if s.tree.NotOffered(cluster, a.Flavors) != "" {
			alternative.Verdicts = append(alternative.Verdicts, nil)
			continue
		}
		proof, why := prove(flavored, cluster)
		if why != "" {
			return alternative, why
		}
		alternative.Verdicts = append(alternative.Verdicts, proof)
	}
	return alternative, ""
}

// notOfferedOf returns which of the flavors a cluster does not offer, in their order.
func (s *State) notOfferedOf(cluster string, flavors []certificate.Flavor) (lacks []string) {
	for _, f := range flavors {
		if s.tree.NotOffered(cluster, []workload.PodSetFlavors{{Flavors: map[resource.Name]string{"": f.Name}}}) != "" {
			lacks = append(lacks, f.Name)
		}
	}
	return lacks
}

// addFlavors adds what the flavors of an assignment add to pods, each once.
func (s *State) addFlavors(known []certificate.Flavor, assigned []workload.PodSetFlavors) []certificate.Flavor {
	for _, set := range assigned {
		for of, name := range set.Flavors {
			if slices.ContainsFunc(known, func(f certificate.Flavor) bool { return f.Name == name }) {
				continue
			}
			terms := s.tree.Terms(workload.PodSetFlavors{Flavors: map[resource.Name]string{of: name}})
			known = append(known, certificate.Flavor{Name: name, NodeLabels: terms.NodeSelector, Levels: s.tree.LevelsOf(name), Tolerations: terms.Tolerations})
		}
	}
	slices.SortFunc(known, func(a, b certificate.Flavor) int { return cmp.Compare(a.Name, b.Name) })
	return known
}
