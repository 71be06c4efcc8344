package certificate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Draft is what a document is made of: the demand, the nodes as they are, and the
// verdicts of the solver.
type Draft struct {
	Workload     workload.ID
	PodSets      []workload.PodSet
	Flavors      []Flavor
	Clusters     []DraftCluster
	Alternatives []DraftAlternative
	// Counting: the document is to be verified by counting alone, without a search.
	Counting bool
}

// DraftCluster is a cluster as the solver sees it.
type DraftCluster struct {
	Name       string
	Nodes      []placement.View
	NotOffered []string // of the flavors of the draft
}

// DraftAlternative has the flavors of an alternative and either Quota, or a verdict of
// DoesNotFit for each cluster; nil for one that does not offer the flavors.
type DraftAlternative struct {
	Flavors  []workload.PodSetFlavors
	Quota    *Bound
	Verdicts []*placement.Certificate
}

// mostMade is the size of the largest document that Make returns, in bytes of JSON: it
// is one part of an answer over NATS.
const mostMade = 512 << 10

// Make returns the document of a draft. It verifies the document before it returns it,
// so an error means that there is none, not that the workload fits.
func Make(draft Draft) (*Document, error) {
	r := newRenaming(draft.PodSets, draft.Flavors)
	d := &Document{
		APIVersion: APIVersion, Kind: Kind, Workload: draft.Workload,
		PodSets: demanded(draft.PodSets), Flavors: r.flavors, Choices: choices(draft.Alternatives),
	}
	if slices.ContainsFunc(d.PodSets, func(set workload.PodSet) bool {
		return slices.ContainsFunc(set.Template.HostPorts, func(p workload.HostPort) bool { return p.IP != "" })
	}) {
		return nil, errors.New("its host ports have addresses")
	}
	total := workload.Workload{PodSets: d.PodSets}.Requests()
	for _, c := range draft.Clusters {
		classes, err := r.classes(c.Nodes, total)
		if err != nil {
			return nil, err
		}
		d.Clusters = append(d.Clusters, Cluster{Name: c.Name, Classes: classes, NotOffered: c.NotOffered})
	}
	for _, from := range draft.Alternatives {
		a := Alternative{Flavors: from.Flavors, Quota: from.Quota}
		for i := range d.Clusters {
			if from.Quota != nil {
				break
			}
			argument, err := argue(&d.Clusters[i], d.effective(from.Flavors), from.Flavors, from.Verdicts[i])
			if err != nil {
				return nil, err
			}
			if draft.Counting && argument.Proof == placement.Searched {
				return nil, errors.New("its proof takes a search")
			}
			a.Arguments = append(a.Arguments, argument)
		}
		d.Alternatives = append(d.Alternatives, a)
	}
	if err := Verify(d); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode certificate: %w", err)
	}
	if len(encoded) > mostMade {
		return nil, fmt.Errorf("it would have %d bytes; at most %d are sent", len(encoded), mostMade)
	}
	return d, nil
}

// demanded returns the pod sets with what a place must have, without preferences and the names
// of containers.
func demanded(sets []workload.PodSet) []workload.PodSet {
	sets = workload.WithoutAsks(sets)
	for i := range sets {
		sets[i].PreferClusters = ""
		t := sets[i].Topology
		if t == nil || t.Mode != workload.TopologyPreferred {
			continue
		}
		sets[i].Topology = nil
		if t.SliceSize > 1 {
			sets[i].Topology = &workload.Topology{SliceSize: t.SliceSize, SliceLevel: t.SliceLevel}
		}
	}
	return sets
}

// choices returns what each pod set is offered in the alternatives.
func choices(alternatives []DraftAlternative) []Choice {
	var offered []Choice
	for _, a := range alternatives {
		for _, f := range a.Flavors {
			at := slices.IndexFunc(offered, func(c Choice) bool { return c.PodSet == f.PodSet })
			if at < 0 {
				at, offered = len(offered), append(offered, Choice{PodSet: f.PodSet})
			}
			if !slices.ContainsFunc(offered[at].Options, func(o map[resource.Name]string) bool { return sameFlavors(o, f.Flavors) }) {
				offered[at].Options = append(offered[at].Options, f.Flavors)
			}
		}
	}
	return offered
}

// argue returns the solver's verdict as an argument. Where the solver has searched, it
// looks for an argument that is easier to verify.
func argue(c *Cluster, w *workload.Workload, flavors []workload.PodSetFlavors, verdict *placement.Certificate) (Argument, error) {
	if verdict == nil {
		return notOffered(c, flavors)
	}
	a := Argument{Cluster: c.Name, Proof: verdict.Proof, PodSets: verdict.PodSets, Resource: verdict.Resource}
	reduced, err := only(w, a.PodSets)
	if err != nil {
		return a, err
	}
	switch a.Proof {
	case placement.Counted:
		a.Room, err = countedOn(c.Classes, reduced)
	case placement.Summed:
		a.Asked, a.Free, err = summedOn(c.Classes, reduced, a.Resource)
	case placement.Searched:
		if easier, found := easiest(c, w); found {
			return easier, nil
		}
	}
	return a, err
}

// notOffered argues by the first pod set that is given a flavor which the cluster does not offer.
func notOffered(c *Cluster, flavors []workload.PodSetFlavors) (Argument, error) {
	for _, f := range flavors {
		for _, flavor := range slices.Sorted(maps.Values(f.Flavors)) {
			if slices.Contains(c.NotOffered, flavor) {
				return Argument{Cluster: c.Name, Proof: NotOffered, PodSets: []string{f.PodSet}, Flavor: flavor}, nil
			}
		}
	}
	return Argument{}, fmt.Errorf("whether it fits into cluster %s is not known", c.Name)
}

// easiest looks for an argument by a rule of topology.
func easiest(c *Cluster, w *workload.Workload) (Argument, bool) {
	for i := range w.PodSets {
		set := &w.PodSets[i]
		if set.Count == 0 {
			continue
		}
		own := Argument{Cluster: c.Name, PodSets: []string{set.Name}}
		alone := &workload.Workload{PodSets: w.PodSets[i : i+1]}
		if t := set.Topology; t != nil {
			if own.Proof, own.Key = Divided, t.Level; t.Mode == workload.TopologyRequired && dividedOn(c.Classes, alone, t.Level) == nil {
				return own, true
			}
			if room, err := slicedOn(c.Classes, alone, t.SliceLevel); err == nil {
				own.Proof, own.Key, own.Room = Sliced, t.SliceLevel, room
				return own, true
			}
		}
		for _, t := range set.Template.Together {
			together := Argument{Cluster: c.Name, Proof: Divided, Key: t.TopologyKey, PodSets: own.PodSets}
			for _, name := range t.PodSets {
				if at := indexOf(w, name); at >= 0 && w.PodSets[at].Count > 0 && name != set.Name {
					together.PodSets = append(slices.Clip(together.PodSets), name)
				}
			}
			if all, err := only(w, together.PodSets); err == nil && dividedOn(c.Classes, all, t.TopologyKey) == nil {
				return together, true
			}
		}
	}
	return Argument{}, false
}

// classes returns nodes as classes, in an order that shows nothing of their names.
func (r *renaming) classes(nodes []placement.View, total resource.List) ([]Class, error) {
	byKey := map[string]*Class{}
	for i := range nodes {
		c, err := r.class(&nodes[i], total)
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("encode class of nodes: %w", err)
		}
		if known := byKey[string(encoded)]; known != nil {
			known.Nodes++
			continue
		}
		c.Nodes = 1
		byKey[string(encoded)] = &c
	}
	classes := []Class{}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		classes = append(classes, *byKey[key])
	}
	return classes, nil
}

// class returns one node as the workload sees it.
func (r *renaming) class(v *placement.View, total resource.List) (Class, error) {
	c := Class{Closed: !v.Node.Ready || v.Node.Drained(), Cordoned: v.Node.Cordoned, Free: resource.List{}, Taints: r.taints(v.Node.Taints)}
	for name, most := range total {
		if free := min(v.Free[name], most); free > 0 {
			c.Free[name] = free
		}
	}
	for _, port := range r.ports {
		if slices.ContainsFunc(v.Ports, port.Conflicts) {
			c.PortsInUse = append(c.PortsInUse, port)
		}
	}
	var err error
	if c.Name, err = r.nodeName(v.Node.Name); err != nil {
		return c, err
	}
	c.Labels, err = r.labels(v.Node.Labels)
	return c, err
}

func comparePorts(a, b workload.HostPort) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
}
