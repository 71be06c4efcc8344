package reconcile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// setOf is a pod set of two pods whose template has that spec.
func setOf(name, spec string) askedSet {
	var decoded map[string]any
	if err := json.Unmarshal([]byte(spec), &decoded); err != nil {
		panic(err)
	}
	return askedSet{name, 2, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"muster.dev/pod-set": name, "ray.io/group": name, "own": "x"}}, "spec": decoded,
	}}
}

// As in Kueue, pod sets share a PodTemplate when they are equal, or need the same of nodes; the
// template has the name of the first.
func TestPodSetsShareATemplate(t *testing.T) {
	t.Parallel()
	const plain = `{"containers": [{"image": "a", "resources": {"requests": {"cpu": "1"}}}]}`
	for name, test := range map[string]struct {
		policy string
		second string
		want   string
	}{
		"without a policy": {"", plain, "[a 2] [b 2]"},
		"equal templates":  {workload.IdenticalPodTemplates, plain, "[a 4]"},
		"another image":    {workload.IdenticalPodTemplates, strings.Replace(plain, `"a"`, `"b"`, 1), "[a 2] [b 2]"},
		"the same needs":   {workload.IdenticalScheduling, `{"priorityClassName": "p", "containers": [{"image": "b", "resources": {"requests": {"cpu": "1000m"}}}]}`, "[a 4]"},
		"other requests":   {workload.IdenticalScheduling, strings.Replace(plain, `"1"`, `"2"`, 1), "[a 2] [b 2]"},
		"another selector": {workload.IdenticalScheduling, `{"nodeSelector": {"a": "b"}, ` + plain[1:], "[a 2] [b 2]"},
		"more containers":  {workload.IdenticalScheduling, strings.Replace(plain, `"containers": [`, `"containers": [{"image": "c"}, `, 1), "[a 2] [b 2]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			merged, err := mergeSets([]askedSet{setOf("a", plain), setOf("b", test.second)}, test.policy)
			var got []string
			for _, set := range merged {
				got = append(got, fmt.Sprintf("[%s %d]", set.podSet, set.pods))
			}
			if err != nil || strings.Join(got, " ") != test.want {
				t.Errorf("merged to %v, %v; want %s", got, err, test.want)
			}
		})
	}
}

// A request takes 32 PodTemplates. Of more pod sets, those that need the same nodes share one, and
// where these are still too many nodes cannot be asked for.
func TestMorePodSetsThanARequestTakes(t *testing.T) {
	t.Parallel()
	sets := func(different int) (sets []askedSet) {
		for i := range 40 {
			sets = append(sets, setOf(fmt.Sprintf("set-%d", i), fmt.Sprintf(`{"nodeSelector": {"n": "%d"}, "containers": []}`, i%different)))
		}
		return sets
	}
	merged, err := mergeSets(sets(32), "")
	if err != nil || len(merged) != 32 || merged[0].pods != 4 || merged[31].pods != 2 {
		t.Errorf("40 sets of 32 kinds become %d, %v; want 32", len(merged), err)
	}
	if _, err := mergeSets(sets(33), ""); err == nil || !strings.Contains(err.Error(), "33 pod sets lack nodes and need different ones: a ProvisioningRequest takes at most 32") {
		t.Errorf("40 sets of 33 kinds give %v", err)
	}
}

// The policy of the configuration is in the command.
func TestARequestForGroupsThatShareATemplate(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := provisionCommand(1)
	command.Manifest = json.RawMessage(strings.Replace(clusterJSON, `"workerGroupSpecs":[`, `"workerGroupSpecs":[{"groupName":"more","template":{"spec":{"containers":[{"name":"worker","image":"other","resources":{"limits":{"cpu":"2","nvidia.com/gpu":1},"requests":{"cpu":"1"}}}]}}},`, 1))
	command.Provision.Merge = workload.IdenticalScheduling
	command.Provision.Pods = []workload.PodCount{{PodSet: "workers", Pods: 3}, {PodSet: "more", Pods: 2}}
	p.Command(command)
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	if want := []string{oneTemplate, oneRequest}; !slices.Equal(p.cluster.created, want) {
		t.Errorf("created: %v, want %v; the status is %+v", p.cluster.created, want, p.status.Provision)
	}
	spec := p.cluster.items[requestID(oneRequest)].Content["spec"].(map[string]any)
	if got := fmt.Sprint(spec["podSets"]); !strings.Contains(got, "count:5") {
		t.Errorf("the request has the pod sets %s, want one of 5 pods", got)
	}
	p.wantRequest(t, event.RequestPending, "")
}
