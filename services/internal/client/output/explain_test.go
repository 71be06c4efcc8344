package output_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/world"
	"muster.dev/muster/services/internal/client/output"
)

// gpus is a gang of the given number of workers with a GPU each.
func gpus(queue, name string, workers int) workload.Workload {
	return workload.Workload{
		ID: event.WorkloadID("docs", name), Queue: queue, Namespace: queue, Kind: "RayCluster", Name: name, Digest: name,
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: workers, Template: workload.Template{
			Requests: resource.List{"nvidia.com/gpu": 1, resource.Pods: 1},
		}}},
	}
}

func quotaOf(name string, nominal int64) quota.ClusterQueue {
	return quota.ClusterQueue{Name: name, Cohort: "company", ResourceGroups: []quota.ResourceGroup{{
		CoveredResources: []resource.Name{"nvidia.com/gpu"},
		Flavors:          []quota.FlavorQuotas{{Name: "default", Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: nominal}}}},
	}}}
}

// What docs/queues.md shows of "muster explain" is what it prints in such a state:
// the queue uses 3 of its 6 GPUs, its cohort has nothing to lend, and there are
// nodes enough.
func TestTheExplanationOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "queues.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, want, found := strings.Cut(string(page), "$ muster explain train\n")
	want, _, closed := strings.Cut(want, "```")
	if !found || !closed {
		t.Fatal("the page has no explanation")
	}
	r := world.New(world.Options{
		Start:  time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC),
		Queues: []state.Queue{{Name: "research", Namespaces: []string{"research"}}, {Name: "product", Namespaces: []string{"product"}}},
		Policy: quota.Config{
			Flavors: []quota.Flavor{{Name: "default"}}, Cohorts: []quota.Cohort{{Name: "company"}},
			ClusterQueues: []quota.ClusterQueue{quotaOf("research", 6), quotaOf("product", 2)},
		},
	})
	r.SetNode(capacity.Node{Cluster: "east", Name: "gpu-0", Ready: true, Allocatable: resource.List{"nvidia.com/gpu": 16, resource.Pods: 110}})
	for _, w := range []workload.Workload{
		gpus("research", "eval", 3), gpus("product", "serve", 2), gpus("research", "train", 5), gpus("research", "sweep", 4), gpus("research", "tune", 6),
	} {
		if _, err := r.Submit(w, ""); err != nil {
			t.Fatal(err)
		}
	}
	train := event.WorkloadID("docs", "train")
	explained, err := r.Explain(train)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := output.Explain(&got, output.Explanation{Name: "train", Phase: workload.Queued, Explanation: explained}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("the explanation (-page +printed):\n%s", diff)
	}
}

// TestExplainNamesBothQueues: an explanation shows the queue that the workload was submitted
// to, as other commands do, and its ClusterQueue where that has another name.
func TestExplainNamesBothQueues(t *testing.T) {
	t.Parallel()
	for local, want := range map[string]string{
		"research":    "Queue:         research\nClusterQueue:  research-cq\n",
		"research-cq": "Queue:     research-cq\n",
		"":            "Queue:     research-cq\n",
	} {
		t.Run(local, func(t *testing.T) {
			e := output.Explanation{Explanation: workload.Explanation{Workload: "id", Queue: "research-cq"}, Name: "train", Phase: workload.Queued, LocalQueue: local}
			var text strings.Builder
			if err := output.Explain(&text, e); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), want) {
				t.Errorf("of the queue %q it says\n%s\nwant %q in it", local, text.String(), want)
			}
		})
	}
}

// What was weighed is in the unit of the gangs, and says what decided: a choice whose victims
// lose more since their checkpoints than others would have is no contradiction.
func TestWhatWasWeighedHasWhatDecided(t *testing.T) {
	t.Parallel()
	cost := func(lost int64, unit workload.CostUnit) workload.EvictionCost {
		return workload.EvictionCost{Lost: lost, Unit: unit}
	}
	for name, c := range map[string]struct {
		choice workload.PreemptionChoice
		want   string
	}{
		"work, against checkpoints": {
			workload.PreemptionChoice{
				Cost: cost(600, workload.UnitAccelerators), OtherCost: cost(1, workload.UnitAccelerators),
				By: workload.ChosenByAccelerators, Counted: 600, OtherCounted: 3600,
			},
			"evicting a loses 600 accelerator-seconds; evicting b instead would have lost 1; the choice counts the work since the admissions, whatever checkpoints were reported, and the last starts: 600 and 3600 accelerator-seconds",
		},
		"of pods": {
			workload.PreemptionChoice{
				Cost: cost(600, workload.UnitPods), OtherCost: cost(700, workload.UnitPods), By: workload.ChosenByPods, Counted: 600, OtherCounted: 700,
			},
			"evicting a loses 600 pod-seconds; evicting b instead would have lost 700; the choice counts the work since the admissions, whatever checkpoints were reported, and the last starts: 600 and 700 pod-seconds",
		},
		"of pods rather than accelerators": {
			workload.PreemptionChoice{Cost: cost(600, workload.UnitPods), OtherCost: cost(7, workload.UnitAccelerators), By: workload.ChosenByAccelerators, OtherCounted: 7},
			"evicting a loses 600 pod-seconds; evicting b instead would have lost 7 accelerator-seconds; the choice counts the work since the admissions, whatever checkpoints were reported, and the last starts: 0 and 7 accelerator-seconds",
		},
		"of both": {
			workload.PreemptionChoice{Cost: cost(600, workload.UnitBoth), OtherCost: cost(700, workload.UnitBoth)},
			"evicting a loses 600 seconds of accelerators or, without any, of pods; evicting b instead would have lost 700",
		},
		"priority": {
			workload.PreemptionChoice{Cost: cost(600, workload.UnitAccelerators), OtherCost: cost(7, workload.UnitAccelerators), By: workload.ChosenByPriority},
			"evicting a loses 600 accelerator-seconds; evicting b instead would have lost 7; the choice takes those of lower priority first",
		},
		"cascade": {
			workload.PreemptionChoice{Cost: cost(600, workload.UnitAccelerators), OtherCost: cost(7, workload.UnitAccelerators), By: workload.ChosenByCascade},
			"evicting a loses 600 accelerator-seconds; evicting b instead would have lost 7; the choice spares a gang that would have others evicted when it comes back",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.choice.Victims, c.choice.VictimCount, c.choice.Other, c.choice.OtherCount = []workload.ID{"a"}, 1, []workload.ID{"b"}, 1
			var e output.Explanation
			e.Reason.Preemption = &workload.PreemptionCause{Choice: &c.choice}
			var text strings.Builder
			if err := output.Explain(&text, e); err != nil {
				t.Fatal(err)
			}
			_, got, _ := strings.Cut(text.String(), "Weighed:")
			got, _, _ = strings.Cut(got, "\n")
			if diff := cmp.Diff(c.want, strings.TrimSpace(got)); diff != "" {
				t.Errorf("weighed is (-want +got):\n%s", diff)
			}
		})
	}
}
