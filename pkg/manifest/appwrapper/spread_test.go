package appwrapper

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		total resource.List
		pods  int64
		want  []string
	}{
		"even":                {resource.List{"cpu": 4000, "nvidia.com/gpu": 2}, 2, []string{"d 2 cpu 2, nvidia.com/gpu 1, pods 1"}},
		"one for two pods":    {resource.List{"nvidia.com/gpu": 1}, 2, []string{"d 1 nvidia.com/gpu 1, pods 1"}},
		"five for three pods": {resource.List{"nvidia.com/gpu": 5}, 3, []string{"d-0 2 nvidia.com/gpu 2, pods 1", "d-1 1 nvidia.com/gpu 1, pods 1"}},
		"two remainders": {resource.List{"cpu": 5, "nvidia.com/gpu": 1}, 3, []string{
			"d-0 1 cpu 2m, nvidia.com/gpu 1, pods 1", "d-1 1 cpu 2m, pods 1", "d-2 1 cpu 1m, pods 1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, set := range spread("d", test.total, test.pods) {
				got = append(got, fmt.Sprintf("%s %d %v", set.Name, set.Count, set.Template.Requests))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("pod sets (-want +got):\n%s", diff)
			}
		})
	}
}

// The pods have the total, no more of them than there were, and none has two units more
// than another.
func TestSpreadIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := resource.List{}
		for _, name := range []resource.Name{"cpu", "memory", "nvidia.com/gpu"} {
			if amount := rapid.Int64Range(0, 50).Draw(t, string(name)); amount > 0 {
				total[name] = amount
			}
		}
		pods := rapid.Int64Range(1, 12).Draw(t, "pods")
		sum, count := workload.Workload{PodSets: spread("d", total, pods)}, int64(0)
		for _, set := range sum.PodSets {
			count += int64(set.Count)
			for name, amount := range total {
				if each := set.Template.Requests[name]; each < amount/pods || each > amount/pods+1 {
					t.Errorf("a pod gets %d of %d %s for %d pods", each, amount, name, pods)
				}
			}
		}
		got := sum.Requests()
		delete(got, resource.Pods)
		if diff := cmp.Diff(total, got); diff != "" || count > pods {
			t.Errorf("%d of %d pods get (-want +got):\n%s", count, pods, diff)
		}
	})
}
