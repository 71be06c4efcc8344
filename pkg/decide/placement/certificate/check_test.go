package certificate_test

import (
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

func views(cpus ...int64) []placement.View {
	f := placement.NewFleet()
	for i, cpu := range cpus {
		name := string(rune('a' + i))
		f.SetNode(capacity.Node{
			Name: name, Ready: true, Labels: map[string]string{"rack": name},
			Allocatable: resource.List{"cpu": cpu, "pods": 10},
		})
	}
	return f.Views()
}

func gang(count int, cpu int64) *workload.Workload {
	return &workload.Workload{PodSets: []workload.PodSet{{
		Name: "w", Count: count, Template: workload.Template{Requests: resource.List{"cpu": cpu, "pods": 1}},
	}}}
}

// Of a gang that fits no certificate is believed, whatever it says; of one that
// does not, those that prove it are.
func TestForgedCertificatesAreRefused(t *testing.T) {
	t.Parallel()
	nodes := views(4, 4)
	apart := gang(3, 1)
	apart.PodSets[0].Template.Apart = []workload.Apart{{TopologyKey: "rack", PodSets: []string{"w"}}}
	for _, c := range []struct {
		name string
		gang *workload.Workload
		cert placement.Certificate
		want bool // believed
	}{
		{"a count of what fits", gang(2, 3), placement.Certificate{Proof: placement.Counted, PodSets: []string{"w"}, Room: 1}, false},
		{"a count", gang(3, 3), placement.Certificate{Proof: placement.Counted, PodSets: []string{"w"}, Room: 2}, true},
		{"a wrong count", gang(3, 3), placement.Certificate{Proof: placement.Counted, PodSets: []string{"w"}, Room: 1}, false},
		{"a count where rules are the cause", apart, placement.Certificate{Proof: placement.Counted, PodSets: []string{"w"}, Room: 2}, false},
		{"a search", apart, placement.Certificate{Proof: placement.Searched, PodSets: []string{"w"}}, true},
		{"a search of what fits", gang(8, 1), placement.Certificate{Proof: placement.Searched, PodSets: []string{"w"}}, false},
		{"a sum", gang(9, 1), placement.Certificate{Proof: placement.Summed, PodSets: []string{"w"}, Resource: "cpu"}, true},
		{"a sum of what fits", gang(8, 1), placement.Certificate{Proof: placement.Summed, PodSets: []string{"w"}, Resource: "cpu"}, false},
		{"a sum of another resource", gang(9, 1), placement.Certificate{Proof: placement.Summed, PodSets: []string{"w"}, Resource: "pods"}, false},
		{"nobody", gang(9, 1), placement.Certificate{Proof: placement.Searched}, false},
		{"a stranger", gang(9, 1), placement.Certificate{Proof: placement.Searched, PodSets: []string{"x"}}, false},
		{"no proof", gang(9, 1), placement.Certificate{PodSets: []string{"w"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := certificate.Check(nodes, c.gang, &c.cert); (err == nil) != c.want {
				t.Errorf("%s: error %v, want it believed: %v", c.name, err, c.want)
			}
		})
	}
}

// Places that break something are found.
func TestWrongPlacesAreRefused(t *testing.T) {
	t.Parallel()
	nodes := views(4, 4)
	rack := gang(2, 3)
	rack.PodSets[0].Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}
	on := func(a, b int) []workload.Placement {
		return []workload.Placement{{PodSet: "w", Node: "a", Pods: a}, {PodSet: "w", Node: "b", Pods: b}}
	}
	if err := certificate.Valid(nodes, gang(2, 3), on(1, 1)); err != nil {
		t.Errorf("right places: %v", err)
	}
	for name, err := range map[string]error{
		"too much on a node":  certificate.Valid(nodes, gang(3, 3), on(2, 1)),
		"a pod without place": certificate.Valid(nodes, gang(3, 3), on(1, 1)),
		"two racks":           certificate.Valid(nodes, rack, on(1, 1)),
		"an unknown node":     certificate.Valid(nodes, gang(1, 3), []workload.Placement{{PodSet: "w", Node: "z", Pods: 1}}),
	} {
		t.Run(name, func(t *testing.T) {
			if err == nil {
				t.Errorf("%s: taken for right", name)
			}
		})
	}
}
