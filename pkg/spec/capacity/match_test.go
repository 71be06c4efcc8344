package capacity_test

import (
	"testing"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

func TestRefuses(t *testing.T) {
	t.Parallel()
	plain := func(change func(*capacity.Node)) capacity.Node {
		n := capacity.Node{Name: "n1", Ready: true, Labels: map[string]string{"zone": "a", "slots": "8"}}
		if change != nil {
			change(&n)
		}
		return n
	}
	tainted := plain(func(n *capacity.Node) {
		n.Taints = []capacity.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}}
	})
	in := func(key, operator string, values ...string) workload.Template {
		return workload.Template{Affinity: []workload.NodeTerm{{Labels: []workload.Requirement{{Key: key, Operator: operator, Values: values}}}}}
	}
	for _, c := range []struct {
		name     string
		node     capacity.Node
		template workload.Template
		want     capacity.Refusal
	}{
		{"nothing asked", plain(nil), workload.Template{}, ""},
		{"not ready", plain(func(n *capacity.Node) { n.Ready = false }), workload.Template{}, capacity.RefusedNotReady},
		{"cordoned", plain(func(n *capacity.Node) { n.Cordoned = true }), workload.Template{}, capacity.RefusedCordoned},
		{
			"cordoned but tolerated", plain(func(n *capacity.Node) { n.Cordoned = true }),
			workload.Template{Tolerations: []workload.Toleration{{Key: "node.kubernetes.io/unschedulable", Operator: "Exists"}}}, "",
		},
		{"selector", plain(nil), workload.Template{NodeSelector: map[string]string{"zone": "b"}}, capacity.RefusedSelector},
		{"selector met", plain(nil), workload.Template{NodeSelector: map[string]string{"zone": "a"}}, ""},
		{"empty value is not a missing key", plain(nil), workload.Template{NodeSelector: map[string]string{"rack": ""}}, capacity.RefusedSelector},
		{"taint", tainted, workload.Template{}, capacity.RefusedTaint},
		{"taint tolerated", tainted, workload.Template{Tolerations: []workload.Toleration{{Key: "gpu", Value: "yes"}}}, ""},
		{"taint with another value", tainted, workload.Template{Tolerations: []workload.Toleration{{Key: "gpu", Value: "no"}}}, capacity.RefusedTaint},
		{"taint of another effect", tainted, workload.Template{Tolerations: []workload.Toleration{{Key: "gpu", Operator: "Exists", Effect: "NoExecute"}}}, capacity.RefusedTaint},
		{"everything tolerated", tainted, workload.Template{Tolerations: []workload.Toleration{{Operator: "Exists"}}}, ""},
		{"preferred taint", plain(func(n *capacity.Node) {
			n.Taints = []capacity.Taint{{Key: "gpu", Effect: "PreferNoSchedule"}}
		}), workload.Template{}, ""},
		{"In", plain(nil), in("zone", "In", "a", "b"), ""},
		{"In, other", plain(nil), in("zone", "In", "b"), capacity.RefusedAffinity},
		{"NotIn of a missing key", plain(nil), in("rack", "NotIn", "b"), ""},
		{"NotIn", plain(nil), in("zone", "NotIn", "a"), capacity.RefusedAffinity},
		{"Exists", plain(nil), in("zone", "Exists"), ""},
		{"DoesNotExist", plain(nil), in("zone", "DoesNotExist"), capacity.RefusedAffinity},
		{"Gt", plain(nil), in("slots", "Gt", "7"), ""},
		{"Gt, equal", plain(nil), in("slots", "Gt", "8"), capacity.RefusedAffinity},
		{"Lt, not a number", plain(nil), in("zone", "Lt", "7"), capacity.RefusedAffinity},
		{"unknown operator", plain(nil), in("zone", "Like", "a"), capacity.RefusedAffinity},
		{"empty term matches nothing", plain(nil), workload.Template{Affinity: []workload.NodeTerm{{}}}, capacity.RefusedAffinity},
		{"field", plain(nil), workload.Template{Affinity: []workload.NodeTerm{{Fields: []workload.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{"n1"}}}}}}, ""},
		{"one of two terms", plain(nil), workload.Template{Affinity: append(in("zone", "In", "b").Affinity, in("zone", "In", "a").Affinity...)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.node.Refuses(&c.template); got != c.want {
				t.Errorf("%s: refused with %q, want %q", c.name, got, c.want)
			}
		})
	}
}
