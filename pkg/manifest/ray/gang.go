package ray

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// member is a pod set with the terms of its template about other pods.
type member struct {
	set         workload.PodSet // as admitted
	created     int             // how many of its pods KubeRay creates at once
	asCreated   workload.Template
	path        string // of the template
	labels      map[string]string
	annotations map[string]string
	spec        *corev1.PodSpec
	hosts       int // of a replica; 1 unless it has several
	autoscaled  bool
}

// clusterLabel names the RayCluster on each of its pods. Its value is the pod's
// own, so a term with matchLabelKeys of it sees the gang alone.
const clusterLabel = "ray.io/cluster"

// bindGang turns what templates ask of the places of other pods into constraints
// within the gang: required pod affinity and anti-affinity, topology spread that
// is not to be broken, and topology annotations. Terms that may match pods of
// others are refused: Muster cannot promise a place that others can spoil.
func bindGang(members []member) ([]workload.PodSet, error) {
	for i := range members {
		for _, read := range []func([]member, int) error{readTogether, readApart, readSpread, readTopology, readRange} {
			if err := read(members, i); err != nil {
				return nil, err
			}
		}
	}
	if err := checkTogether(members); err != nil {
		return nil, err
	}
	if err := readGroups(members); err != nil {
		return nil, err
	}
	var sets []workload.PodSet
	for _, m := range members {
		if m.set.Count > 0 || m.set.Role == workload.RoleWorker {
			sets = append(sets, m.set) // a worker group without pods may grow
		}
	}
	return sets, nil
}

// refuseAmongPods refuses what bindGang reads, for pods of which Muster does not
// know all others.
func refuseAmongPods(path string, spec *corev1.PodSpec) error {
	for i, spread := range spec.TopologySpreadConstraints {
		if spread.WhenUnsatisfiable != corev1.ScheduleAnyway {
			return refuse(fmt.Sprintf("%s.topologySpreadConstraints[%d].whenUnsatisfiable", path, i), "is "+fault.Quote(string(spread.WhenUnsatisfiable)),
				"want ScheduleAnyway: Muster plans spreading for Ray's pods alone")
		}
	}
	const remedy = "use a preferred term: Muster plans affinity between Ray's pods alone"
	if len(requiredAffinity(spec)) > 0 {
		return refuse(path+".affinity.podAffinity", "is required", remedy)
	}
	if len(requiredAntiAffinity(spec)) > 0 {
		return refuse(path+".affinity.podAntiAffinity", "is required", remedy)
	}
	return nil
}

func requiredAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func requiredAntiAffinity(spec *corev1.PodSpec) []corev1.PodAffinityTerm {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func readTogether(members []member, i int) error {
	m := &members[i]
	for j, term := range requiredAffinity(m.spec) {
		where := fmt.Sprintf("%s.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[%d]", m.path, j)
		names, err := matched(where, members, i, term)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return refuse(where+".labelSelector", "matches no pod of the gang", "want one that matches pods of it, or remove the term")
		}
		m.set.Template.Together = append(m.set.Template.Together, workload.Together{TopologyKey: term.TopologyKey, PodSets: names})
	}
	return nil
}

// checkTogether refuses affinity that kube-scheduler may never fulfil, or only
// in one order of binding: it lets the first of several pods that match each
// other go anywhere, and all others wait for a pod that matches.
func checkTogether(members []member) error {
	find := func(name string) *member {
		return &members[slices.IndexFunc(members, func(m member) bool { return m.set.Name == name })]
	}
	for i := range members {
		m := &members[i]
		for _, t := range m.set.Template.Together {
			own := slices.Contains(t.PodSets, m.set.Name)
			for _, name := range t.PodSets {
				other := find(name)
				same := slices.ContainsFunc(other.set.Template.Together, func(theirs workload.Together) bool {
					return theirs.TopologyKey == t.TopologyKey && slices.Equal(theirs.PodSets, t.PodSets)
				})
				switch {
				case own && same:
				case !own && len(t.PodSets) == 1 && other.set.Count == 1 && len(requiredAffinity(other.spec)) == 0:
				default:
					return refuse(m.path+".spec.affinity.podAffinity", fmt.Sprintf("matches pods of %q, which do not have the same term", name),
						"give the same term to all pod sets that it matches, or have it match a single pod without required affinity, such as the head")
				}
			}
		}
	}
	return nil
}

func readApart(members []member, i int) error {
	m := &members[i]
	for j, term := range requiredAntiAffinity(m.spec) {
		where := fmt.Sprintf("%s.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[%d]", m.path, j)
		names, err := matched(where, members, i, term)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			m.set.Template.Apart = append(m.set.Template.Apart, workload.Apart{TopologyKey: term.TopologyKey, PodSets: names})
		}
	}
	return nil
}

// matched returns the pod sets that a term of affinity matches.
func matched(where string, members []member, i int, term corev1.PodAffinityTerm) ([]string, error) {
	switch {
	case term.TopologyKey == "":
		return nil, refuse(where+".topologyKey", "is empty", "want the label whose values are the domains")
	case len(term.Namespaces) > 0 || term.NamespaceSelector != nil:
		return nil, refuse(where+".namespaces", "is set", "remove it: Muster plans affinity within the gang alone")
	case len(term.MismatchLabelKeys) > 0:
		return nil, refuse(where+".mismatchLabelKeys", "is set", "remove it: Muster plans affinity within the gang alone")
	}
	if err := checkLabel(where+".topologyKey", term.TopologyKey, ""); err != nil {
		return nil, err
	}
	return selects(where, members, i, term.LabelSelector, term.MatchLabelKeys)
}

// selects returns the pod sets whose pods a selector matches, by the labels that
// KubeRay and Muster give them and those of their templates. own labels of which
// the value is only known later can be asked for by matchLabelKeys.
func selects(where string, members []member, i int, selector *metav1.LabelSelector, keys []string) ([]string, error) {
	if !slices.Contains(keys, clusterLabel) && !slices.Contains(keys, kube.WorkloadLabel) {
		return nil, refuse(where, "may match pods of others", "add matchLabelKeys: ["+clusterLabel+"]: Muster plans within the gang alone")
	}
	if selector == nil {
		return nil, nil // matches nothing
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, refuse(where+".labelSelector", "is not valid: "+fault.Clip(err.Error()), "want matchLabels and matchExpressions as in Kubernetes")
	}
	requirements, _ := parsed.Requirements()
	for _, r := range requirements {
		if _, known := members[i].labels[r.Key()]; !known && lateLabel(r.Key()) {
			return nil, refuse(where+".labelSelector", "asks for "+fault.Quote(r.Key())+", whose value is not known yet", "name it in matchLabelKeys")
		}
	}
	var names []string
	for _, m := range members {
		if m.set.Role == workload.RoleSubmitter && slices.Contains(keys, clusterLabel) || m.set.Count == 0 {
			continue // the submitter's pod has no such label
		}
		same := func(key string) bool { // both have it, with one value
			own, known := members[i].labels[key]
			theirs, also := m.labels[key]
			return lateLabel(key) && !known && !also || known && also && own == theirs
		}
		if parsed.Matches(labels.Set(m.labels)) && !slices.ContainsFunc(keys, func(key string) bool { return !same(key) }) {
			names = append(names, m.set.Name)
		}
	}
	return names, nil
}

// lateLabel reports whether KubeRay or Muster give pods the label, with a value
// that is known only later unless the member has it.
func lateLabel(key string) bool {
	return strings.HasPrefix(key, "ray.io/") || strings.HasPrefix(key, "muster.dev/")
}
