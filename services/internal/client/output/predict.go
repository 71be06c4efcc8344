package output

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Group is a group of predicted pods that are alike.
type Group struct {
	Object string `json:"object"` // as kubectl names it: "raycluster/glue"
	Group  string `json:"group"`
	Role   string `json:"role"`
	Count  int    `json:"count"`
	// Requests of one pod, as Kubernetes writes quantities.
	Requests     map[string]string     `json:"requests"`
	NodeSelector map[string]string     `json:"nodeSelector"`
	Tolerations  []workload.Toleration `json:"tolerations"`
	Affinity     []workload.NodeTerm   `json:"affinity,omitempty"`

	requests resource.List
}

// Groups shows the pod sets of an object.
func Groups(object string, sets []workload.PodSet) []Group {
	var groups []Group
	for _, set := range sets {
		asked := set.Template.Requests.Clone()
		delete(asked, resource.Pods) // each pod is one
		g := Group{
			Object: object, Group: set.Name, Role: set.Role, Count: set.Count, Requests: map[string]string{},
			NodeSelector: set.Template.NodeSelector, Tolerations: set.Template.Tolerations, Affinity: set.Template.Affinity,
			requests: asked,
		}
		for name, amount := range asked {
			g.Requests[string(name)] = quantity(name, amount)
		}
		if g.NodeSelector == nil {
			g.NodeSelector = map[string]string{}
		}
		if g.Tolerations == nil {
			g.Tolerations = []workload.Toleration{}
		}
		groups = append(groups, g)
	}
	return groups
}

// quantity is an amount in Kubernetes' canonical form: of the two forms of bytes
// the shorter one.
func quantity(name resource.Name, amount int64) string {
	if name == resource.CPU {
		return apiresource.NewMilliQuantity(amount, apiresource.DecimalSI).String()
	}
	decimal := apiresource.NewQuantity(amount, apiresource.DecimalSI).String()
	if !resource.InBytes(name) {
		return decimal
	}
	binary := apiresource.NewQuantity(amount, apiresource.BinarySI).String()
	if len(decimal) < len(binary) {
		return decimal
	}
	return binary
}

// Predicted is the table of predicted pods, with a line of totals for each
// object.
func Predicted(groups []Group) Table {
	t := Table{Header: []string{"OBJECT", "GROUP", "ROLE", "PODS", "EACH ASKS", "NODE SELECTOR", "TOLERATES"}, Long: []string{"EACH ASKS", "NODE SELECTOR", "TOLERATES"}}
	for i := 0; i < len(groups); {
		object, pods, sum := groups[i].Object, 0, resource.List{}
		for ; i < len(groups) && groups[i].Object == object; i++ {
			g := groups[i]
			pods += g.Count
			sum = sum.Plus(g.requests.Times(int64(g.Count)))
			t.Rows = append(t.Rows, []string{
				g.Object, g.Group, g.Role, strconv.Itoa(g.Count), g.requests.String(), selector(g.NodeSelector), tolerated(g.Tolerations),
			})
		}
		t.Rows = append(t.Rows, []string{object, "total", "", strconv.Itoa(pods), sum.String(), "", ""})
	}
	return t
}

func selector(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return dash(strings.Join(parts, ","))
}

func tolerated(tolerations []workload.Toleration) string {
	var parts []string
	for _, t := range tolerations {
		parts = append(parts, setOn(cmp.Or(t.Key, "*"), t.Value, t.Effect))
	}
	return dash(strings.Join(parts, ","))
}
