package workload_test

import (
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// TestComplexityIsBounded: each bound lets as much through as it says, and no more.
func TestComplexityIsBounded(t *testing.T) {
	t.Parallel()
	texts := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		return all
	}
	one := func(set workload.PodSet) []workload.PodSet { return []workload.PodSet{set} }
	in := func(values int) []workload.NodeTerm {
		return []workload.NodeTerm{{Labels: []workload.Requirement{{Key: "a", Operator: "In", Values: texts(values)}}}}
	}
	for _, c := range []struct {
		name string
		most int
		sets func(n int) []workload.PodSet
	}{
		{"pod sets", workload.MostPodSets, func(n int) []workload.PodSet { return make([]workload.PodSet, n) }},
		{"resources", workload.MostRequests, func(n int) []workload.PodSet {
			l := resource.List{}
			for _, name := range texts(n) {
				l[resource.Name(name)] = 1
			}
			return one(workload.PodSet{Template: workload.Template{Requests: l}})
		}},
		{"tolerations", workload.MostTerms, func(n int) []workload.PodSet {
			return one(workload.PodSet{Template: workload.Template{Tolerations: make([]workload.Toleration, n)}})
		}},
		{"values", workload.MostTerms - 2, func(n int) []workload.PodSet {
			return one(workload.PodSet{Template: workload.Template{Affinity: in(n)}})
		}},
		{"host ports", workload.MostHostPorts, func(n int) []workload.PodSet {
			return one(workload.PodSet{Template: workload.Template{HostPorts: make([]workload.HostPort, n)}})
		}},
		{"spreads", workload.MostRules, func(n int) []workload.PodSet {
			return one(workload.PodSet{Template: workload.Template{Spread: make([]workload.Spread, n)}})
		}},
		{"sets kept apart", workload.MostRules - 1, func(n int) []workload.PodSet {
			return one(workload.PodSet{Template: workload.Template{Apart: []workload.Apart{{PodSets: texts(n)}}}})
		}},
		{"labels", workload.MostTopoKeys, func(n int) []workload.PodSet {
			var set workload.PodSet
			for _, key := range texts(n) {
				set.Template.Together = append(set.Template.Together, workload.Together{TopologyKey: key})
			}
			return one(set)
		}},
		{"terms in sum", workload.MostGangTerms / 64, func(n int) []workload.PodSet {
			sets := make([]workload.PodSet, n)
			for i := range sets {
				sets[i].Template.Affinity = in(62)
			}
			return sets
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := workload.CheckComplexity(c.sets(c.most)); err != nil {
				t.Errorf("%d are refused: %v", c.most, err)
			}
			if err := workload.CheckComplexity(c.sets(c.most + 1)); err == nil || !strings.Contains(err.Error(), "at most") {
				t.Errorf("%d are taken: %v", c.most+1, err)
			}
		})
	}
}
