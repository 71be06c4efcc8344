package placement_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// draft makes a draft of an instance that does not fit, with flavors and quota for some;
// nil where it fits or is not decided.
func (in *instance) draft(r *rand.Rand) *certificate.Draft {
	nodes := in.fleet()
	d := &certificate.Draft{
		Workload: "w", PodSets: in.gang.PodSets, Clusters: []certificate.DraftCluster{{Name: "east", Nodes: nodes.Views()}},
		Flavors: []certificate.Flavor{
			{Name: "first", NodeLabels: map[string]string{"zone": "z0"}, Levels: []string{"block", "rack"}},
			{Name: "second", NodeLabels: map[string]string{"pool": "spot"}, Tolerations: []workload.Toleration{{Key: "dedicated", Value: "x"}}},
		},
	}
	combinations := [][]workload.PodSetFlavors{nil}
	if r.IntN(2) == 0 {
		name := in.gang.PodSets[0].Name
		combinations = nil
		for _, f := range d.Flavors {
			combinations = append(combinations, []workload.PodSetFlavors{{PodSet: name, Flavors: map[resource.Name]string{"cpu": f.Name, "memory": f.Name}}})
		}
	} else {
		d.Flavors = nil
	}
	for _, flavors := range combinations {
		if bound := over(in.gang.PodSets, flavors, r); bound != nil {
			d.Alternatives = append(d.Alternatives, certificate.DraftAlternative{Flavors: flavors, Quota: bound})
			continue
		}
		v := nodes.Solve(given(in.gang.PodSets, flavors, d.Flavors), placement.Budget)
		if v.Outcome != placement.DoesNotFit {
			return nil
		}
		d.Alternatives = append(d.Alternatives, certificate.DraftAlternative{Flavors: flavors, Verdicts: []*placement.Certificate{v.Certificate}})
	}
	return d
}

// over is a bound that the pods exceed; nil for none.
func over(sets []workload.PodSet, flavors []workload.PodSetFlavors, r *rand.Rand) *certificate.Bound {
	for _, c := range quota.ChargesOf(sets, flavors) {
		if c.Flavor != "" && c.Amount > 0 && r.IntN(3) == 0 {
			return &certificate.Bound{Flavor: c.Flavor, Resource: c.Resource, Asked: c.Amount, Available: r.Int64N(c.Amount)}
		}
	}
	return nil
}

// given returns the pods with what their flavors add.
func given(sets []workload.PodSet, flavors []workload.PodSetFlavors, all []certificate.Flavor) *workload.Workload {
	w := &workload.Workload{PodSets: slices.Clone(sets)}
	for _, f := range flavors {
		for i := range w.PodSets {
			for _, flavor := range all {
				if w.PodSets[i].Name != f.PodSet || !slices.Contains(slices.Collect(maps.Values(f.Flavors)), flavor.Name) {
					continue
				}
				t := &w.PodSets[i].Template
				selector := map[string]string{}
				maps.Copy(selector, t.NodeSelector)
				maps.Copy(selector, flavor.NodeLabels)
				t.NodeSelector, t.Tolerations = selector, slices.Concat(t.Tolerations, flavor.Tolerations)
				w.PodSets[i] = w.PodSets[i].InLevels(flavor.Levels)
			}
		}
	}
	return w
}

// holds reports whether what a document claims is true of the nodes and quota that it
// states: the solver, which does not know the arguments, finds no places for any of the
// combinations.
func holds(d *certificate.Document) bool {
	combinations := [][]workload.PodSetFlavors{nil}
	for _, c := range d.Choices {
		var longer [][]workload.PodSetFlavors
		for _, so := range combinations {
			for _, option := range c.Options {
				longer = append(longer, append(slices.Clip(so), workload.PodSetFlavors{PodSet: c.PodSet, Flavors: option}))
			}
		}
		combinations = longer
	}
	for _, flavors := range combinations {
		exceeded := slices.ContainsFunc(d.Alternatives, func(a certificate.Alternative) bool {
			return a.Quota != nil && sameAs(a.Flavors, flavors) && slices.ContainsFunc(quota.ChargesOf(d.PodSets, flavors), func(c quota.Charge) bool {
				return c.Flavor == a.Quota.Flavor && c.Resource == a.Quota.Resource && c.Amount > a.Quota.Available
			})
		})
		if exceeded {
			continue
		}
		for _, c := range d.Clusters {
			if fleetOf(nodesOf(&c)...).Solve(given(d.PodSets, flavors, d.Flavors), placement.Budget).Outcome == placement.Fits {
				return false
			}
		}
		if len(d.Clusters) == 0 {
			return false
		}
	}
	return true
}

func sameAs(a, b []workload.PodSetFlavors) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(f workload.PodSetFlavors) bool {
		return !slices.ContainsFunc(b, func(g workload.PodSetFlavors) bool { return f.PodSet == g.PodSet && maps.Equal(f.Flavors, g.Flavors) })
	})
}

// nodesOf writes out the classes of a cluster.
func nodesOf(c *certificate.Cluster) []capacity.Node {
	var nodes []capacity.Node
	for _, class := range c.Classes {
		for range min(class.Nodes, 100) {
			nodes = append(nodes, capacity.Node{
				Name: fmt.Sprintf("%s-%d", class.Name, len(nodes)), Labels: class.Labels, Taints: class.Taints, Ready: !class.Closed, Cordoned: class.Cordoned,
				Allocatable: class.Free, UsedPorts: class.PortsInUse,
			})
		}
	}
	return nodes
}

// mutants calls try with each document that differs from the given one in one place.
func mutants(t *testing.T, content []byte, r *rand.Rand, try func(where string, mutant []byte)) {
	t.Helper()
	var root any
	if err := json.Unmarshal(content, &root); err != nil {
		t.Fatal(err)
	}
	texts := []string{"x"}
	var collect func(any)
	collect = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				collect(v[key])
			}
		case []any:
			for _, e := range v {
				collect(e)
			}
		case string:
			texts = append(texts, v)
		}
	}
	collect(root)
	var walk func(where string, v any, set func(any))
	give := func(where string, set func(any), was any, values ...any) {
		for _, value := range values {
			set(value)
			mutant, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			try(fmt.Sprintf("%s = %v", where, value), mutant)
		}
		set(was)
	}
	walk = func(where string, v any, set func(any)) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				was := v[key]
				delete(v, key)
				give(where, set, v, v)
				v[key] = was
				walk(where+"."+key, was, func(to any) { v[key] = to })
			}
		case []any:
			for i := range v {
				give(where, set, v, slices.Concat(v[:i], v[i+1:]), slices.Concat(v, v[i:i+1]))
				walk(fmt.Sprintf("%s[%d]", where, i), v[i], func(to any) { v[i] = to })
			}
		case float64:
			give(where, set, v, v+1, v-1, 2*v+1, float64(0), float64(-1), float64(1<<40))
		case bool:
			give(where, set, v, !v)
		case string:
			give(where, set, v, texts[r.IntN(len(texts))], texts[r.IntN(len(texts))], "")
		}
	}
	walk("", root, func(to any) { root = to })
}

// TestForgedDocumentsAreRefused: of random workloads that do not fit, a document is made
// and verified; changed in any one place, it is refused or still true.
func TestForgedDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	made, refused, kept, proofs := 0, 0, 0, map[placement.Proof]int{}
	for seed := range uint64(400) {
		in, r := drawInstance(seed), rand.New(rand.NewPCG(seed, 2))
		draft := in.draft(r)
		if draft == nil {
			continue
		}
		d, err := certificate.Make(*draft)
		if err != nil {
			if !errors.Is(err, certificate.ErrTooLarge) && !strings.Contains(err.Error(), "have addresses") && !strings.Contains(err.Error(), "ranges or flavors") {
				t.Errorf("seed %d: no document: %v\n%s", seed, err, in)
			}
			continue
		}
		made++
		content, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range d.Alternatives {
			for _, argument := range a.Arguments {
				proofs[argument.Proof]++
			}
		}
		if !holds(d) {
			t.Errorf("seed %d: the workload fits on what the document states\n%s\n%s", seed, content, in)
		}
		if made > 40 {
			continue
		}
		mutants(t, content, r, func(where string, mutant []byte) {
			forged, err := certificate.Read(bytes.NewReader(mutant))
			if err == nil {
				err = certificate.Verify(forged)
			}
			switch {
			case err != nil:
				refused++
			case !holds(forged):
				t.Errorf("seed %d: %s: it is believed, and the workload fits\n%s", seed, where, mutant)
			default:
				kept++
			}
		})
	}
	t.Logf("%d documents (%v); of what was changed %d were refused, %d stayed true", made, proofs, refused, kept)
	if made < 80 || refused < 1000 || len(proofs) < 5 {
		t.Error("too few to tell anything")
	}
}
