package kubequeues

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/query"
)

// TestALabelOfANamespaceOpensAQueue: with kubectl alone. A RayJob waits while its namespace does
// not have the label that the ClusterQueue selects, starts when the namespace gets it, and stays
// when the namespace loses it.
func TestALabelOfANamespaceOpensAQueue(t *testing.T) {
	s := startFor(t, nil, "team-c")
	withDefinitions(t, s)
	must(t, s, "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: any}\n---\n"+
		strings.Replace(tenant("team-c"), "namespaceSelector: {}", "namespaceSelector: {matchLabels: {tier: gold}}", 1), "apply", "-n", "team-c", "-f", "-")
	if err := s.AddNodes(t.Context(), "gpu", 1, "cpu=32", "memory=64Gi", "nvidia.com/gpu=8"); err != nil {
		t.Fatal(err)
	}
	must(t, s, "", "wait", "--for=condition=Active", "clusterqueue/team-c-cq", "--timeout=60s")
	job := func(name string) {
		must(t, s, strings.ReplaceAll(rayJob(1), "pytorch-text-classifier", name), "create", "-n", "team-c", "-f", "-")
	}
	reason := func(name string) string {
		answer, err := s.Queries.Workloads(t.Context(), query.WorkloadsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range answer.Workloads {
			if w.Name == name && w.Reason != nil {
				return w.Reason.Message
			}
		}
		return ""
	}
	suspended := func(name string) string {
		return field(t, s, rayJobs, "team-c", name, "{.spec.suspend}")
	}
	job("early")
	until(t, "it waits for the label", func() bool {
		return strings.Contains(reason("early"), `does not admit namespace "team-c"`) && strings.Contains(reason("early"), `it has no label "tier"`)
	})
	if got := suspended("early"); got != "true" {
		t.Errorf("suspend is %q while it waits", got)
	}
	must(t, s, "", "label", "namespace", "team-c", "tier=gold")
	until(t, "it starts with the label", func() bool { return suspended("early") != "true" })
	must(t, s, "", "label", "namespace", "team-c", "tier=free", "--overwrite")
	job("late")
	until(t, "the next one waits", func() bool { return strings.Contains(reason("late"), "it has tier=free") })
	if got := suspended("early"); got == "true" {
		t.Error("the one that runs was suspended when the namespace lost the label")
	}
}
