package certificate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// secretFleet has nodes all of whose texts and amounts begin with "secret" or 777.
func secretFleet() *placement.Fleet {
	f := placement.NewFleet()
	for i := range 6 {
		f.SetNode(capacity.Node{
			Name: fmt.Sprintf("secret-node-%d", i), Ready: true,
			Labels: map[string]string{
				"kubernetes.io/hostname": fmt.Sprintf("secret-host-%d", i), "rack": fmt.Sprintf("secret-rack-%d", i/2),
				"price": fmt.Sprint(7770 + i), "owner": "secret-team", "secret-label": "secret-value", "pool": "secret-pool",
			},
			Taints:      []capacity.Taint{{Key: "secret-taint", Value: "secret-taint-value", Effect: "NoSchedule"}, {Key: "dedicated", Value: "secret-user", Effect: "NoSchedule"}},
			Allocatable: resource.List{"cpu": 7770 + int64(i), "memory": 77700, "pods": 777, "secret.dev/device": 777},
			UsedPorts:   []workload.HostPort{{Port: 7777, IP: "10.7.7.7"}},
		})
	}
	return f
}

// TestATenantLearnsNoNamesByWhatItAsksFor: whatever a workload names (keys of labels,
// domains, ranges, fields, tolerations), its certificate has no name of a node, domain,
// taint or flavor's label that it did not name itself, and no amount beyond its own
// requests. Its containers are not in it either.
func TestATenantLearnsNoNamesByWhatItAsksFor(t *testing.T) {
	t.Parallel()
	everything := []workload.Toleration{{Operator: "Exists"}}
	affinity := func(requirements ...workload.Requirement) []workload.NodeTerm {
		return []workload.NodeTerm{{Labels: requirements}}
	}
	for name, template := range map[string]workload.Template{
		"nothing":      {},
		"a domain":     {Together: []workload.Together{{TopologyKey: "rack"}}},
		"hosts":        {Apart: []workload.Apart{{TopologyKey: "kubernetes.io/hostname", PodSets: []string{"w"}}}, Tolerations: everything},
		"a spread":     {Spread: []workload.Spread{{TopologyKey: "rack", MaxSkew: 1}}, Tolerations: everything},
		"all labels":   {Affinity: affinity(workload.Requirement{Key: "owner", Operator: "Exists"}, workload.Requirement{Key: "rack", Operator: "NotIn", Values: []string{"guess"}}), Tolerations: everything},
		"a range":      {Affinity: affinity(workload.Requirement{Key: "price", Operator: "Gt", Values: []string{"5"}}, workload.Requirement{Key: "price", Operator: "Lt", Values: []string{"9999"}}), Tolerations: everything},
		"a field":      {Affinity: []workload.NodeTerm{{Fields: []workload.Requirement{{Key: "metadata.name", Operator: "NotIn", Values: []string{"guess"}}}}}, Tolerations: everything},
		"a toleration": {Tolerations: []workload.Toleration{{Key: "dedicated", Operator: "Exists"}}},
		"containers":   {Asks: [][]workload.ContainerAsk{{{Name: "secret-container", Requests: resource.List{"secret.dev/device": 777}}}}},
		"ports":        {HostPorts: []workload.HostPort{{Port: 80}}, Tolerations: everything},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template.Requests = resource.List{"cpu": 5000, "pods": 1}
			if strings.HasPrefix(name, "all") || name == "a range" || name == "a field" || name == "hosts" || name == "ports" || name == "a spread" {
				template.Requests["cpu"] = 1000
			}
			fleet := secretFleet()
			draft := certificate.Draft{
				Workload: "w", PodSets: []workload.PodSet{{Name: "w", Count: 50, Template: template}},
				Flavors:  []certificate.Flavor{{Name: "f", NodeLabels: map[string]string{"pool": "secret-pool"}, Levels: []string{"secret-label", "rack"}, Tolerations: []workload.Toleration{{Key: "secret-taint", Value: "secret-taint-value"}}}},
				Clusters: []certificate.DraftCluster{{Name: "east", Nodes: fleet.Views()}},
			}
			given := draft.PodSets[0]
			given.Template.NodeSelector = map[string]string{"pool": "secret-pool"}
			given.Template.Tolerations = append([]workload.Toleration{{Key: "secret-taint", Value: "secret-taint-value"}}, template.Tolerations...)
			given = given.InLevels(draft.Flavors[0].Levels)
			verdict := fleet.Solve(&workload.Workload{PodSets: []workload.PodSet{given}}, placement.Budget)
			if verdict.Outcome != placement.DoesNotFit {
				t.Fatalf("the workload has to be too large: %s", verdict.Outcome)
			}
			draft.Alternatives = []certificate.DraftAlternative{{
				Flavors:  []workload.PodSetFlavors{{PodSet: "w", Flavors: map[resource.Name]string{"cpu": "f"}}},
				Verdicts: []*placement.Certificate{verdict.Certificate},
			}}
			d, err := certificate.Make(draft)
			if err != nil {
				t.Fatal(err)
			}
			content, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"secret", "7777", "10.7.7.7", `"777`} {
				if strings.Contains(string(content), secret) {
					t.Errorf("the certificate has %q: %s", secret, content)
				}
			}
		})
	}
}

// TestAmountsBeyondTheRequestAreNotInTheDocument: of what is free a certificate says no more than
// the workload asks for.
func TestAmountsBeyondTheRequestAreNotInTheDocument(t *testing.T) {
	t.Parallel()
	fleet := secretFleet()
	set := workload.PodSet{Name: "w", Count: 2, Template: workload.Template{Requests: resource.List{"cpu": 10, "secret.dev/other": 1}, Tolerations: []workload.Toleration{{Operator: "Exists"}}}}
	verdict := fleet.Solve(&workload.Workload{PodSets: []workload.PodSet{set}}, placement.Budget)
	d, err := certificate.Make(certificate.Draft{
		Workload: "w", PodSets: []workload.PodSet{set}, Clusters: []certificate.DraftCluster{{Name: "east", Nodes: fleet.Views()}},
		Alternatives: []certificate.DraftAlternative{{Verdicts: []*placement.Certificate{verdict.Certificate}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	classes := d.Clusters[0].Classes
	if len(classes) != 1 || classes[0].Nodes != 6 || !classes[0].Free.Equal(resource.List{"cpu": 20}) {
		t.Errorf("classes %+v, want one of 6 nodes with cpu 20", classes)
	}
}

// TestHostileDocumentsAreBounded: what would take long to verify is refused.
func TestHostileDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	valid := func(sets, count, classes, nodes int) *certificate.Document {
		d := &certificate.Document{APIVersion: certificate.APIVersion, Kind: certificate.Kind, Workload: "w", Clusters: []certificate.Cluster{{Name: "east"}}}
		a := certificate.Argument{Cluster: "east", Proof: placement.Searched}
		for i := range sets {
			set := workload.PodSet{Name: fmt.Sprint(i), Count: count, Template: workload.Template{Requests: resource.List{"cpu": int64(3 + i%5), "memory": int64(3 + i%7)}}}
			set.Template.Spread = []workload.Spread{{TopologyKey: "k", MaxSkew: 3}}
			d.PodSets = append(d.PodSets, set)
			a.PodSets = append(a.PodSets, set.Name)
		}
		for i := range classes {
			d.Clusters[0].Classes = append(d.Clusters[0].Classes, certificate.Class{Nodes: nodes, Labels: map[string]string{"k": fmt.Sprint(i)}, Free: resource.List{"cpu": 17, "memory": 19}})
		}
		d.Alternatives = []certificate.Alternative{{Arguments: []certificate.Argument{a}}}
		return d
	}
	for name, d := range map[string]*certificate.Document{
		"a long search":      valid(8, 40, 30, 1),
		"many nodes":         valid(1, 1000, 1, 1<<20),
		"many of everything": valid(64, 1000, 1<<14, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := certificate.Verify(d); !errors.Is(err, certificate.ErrTooLarge) {
				t.Errorf("verified: %v, want %v", err, certificate.ErrTooLarge)
			}
		})
	}
	for name, levels := range map[string][]string{
		"too many levels": slices.Repeat([]string{"a"}, 17), "no label": {""}, "two labels in one": {"block,rack"}, "one twice": {"rack", "rack"},
		"a long label": {strings.Repeat("a", 1000)}, "hosts above racks": {"kubernetes.io/hostname", "rack"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := valid(1, 2, 1, 1)
			d.Flavors = []certificate.Flavor{{Name: "f", Levels: levels}}
			if err := certificate.Verify(d); err == nil || !strings.Contains(err.Error(), `topology of flavor "f": levels`) {
				t.Errorf("verified: %v", err)
			}
		})
	}
	for name, text := range map[string]string{
		"no object": `[1]`, "too long": `{"x":"` + strings.Repeat("a", 2*certificate.MaxSize) + `"}`,
		"a long certificate": `{"certificate":{"workload":"` + strings.Repeat("a", certificate.MaxSize) + `"}}`,
		"an unknown field":   `{"kind":"DoesNotFit","trust":"me"}`, "nothing": ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d, err := certificate.Read(strings.NewReader(text)); err == nil {
				t.Errorf("read %+v", d)
			}
		})
	}
}
