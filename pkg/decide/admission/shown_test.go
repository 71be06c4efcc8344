package admission_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

func showingConfig(gpus int64, managed ...resource.Name) quota.Config {
	c := askingConfig(gpus, managed...)
	c.ProvisioningConfigs[0].Class = workload.PlaceholderClass
	return c
}

// An autoscaler places pending pods on what is free before it adds nodes, so a gang shows those
// of its pods, too, that have a place.
func TestAGangShowsAllPodsThatItsCheckManages(t *testing.T) {
	t.Parallel()
	s := askingState(t, showingConfig(100, "nvidia.com/gpu"), nodeOf("cpu", 8, 0), nodeOf("gpu", 8, 3))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("head", 1, 2, 0), setOf("workers", 4, 1, 1)})
	plan := decide(s)
	wantPlan(t, plan, "ask gang-0 [{workers 4}]")
	if why := plan.Waits[0].Reason; why.Kind != workload.ReasonProvisioning || !strings.Contains(why.Message, "4 of workers pods are shown as placeholders in cluster") {
		t.Errorf("it waits for %+v", why)
	}
	if why := s.Reason("gang-0"); !strings.Contains(why.Message, "it is shown as placeholder pods in cluster") { // as a new leader says it
		t.Errorf("it waits for %+v", why)
	}
}

// One gang of a cluster at a time shows itself. The next one does when the first is admitted,
// backs off, or has left.
func TestGangsShowThemselvesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(s *admission.State){
		"it is admitted": func(s *admission.State) {
			s.SetNode(nodeOf("new", 8, 1))
			s.Provisioned("gang-0", start)
		},
		"it is cancelled": func(s *admission.State) { s.Dequeue("gang-0") },
		"it backs off": func(s *admission.State) {
			s.Enqueue(admission.Waiting{NotBefore: start.Add(time.Hour), Reported: true, Workload: &workload.Workload{
				ID: "gang-0", Queue: "queue", PodSets: []workload.PodSet{setOf("workers", 1, 1, 1)},
			}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := askingState(t, showingConfig(100), nodeOf("cpu", 8, 0))
			enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
			enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
			enqueue(s, 2, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
			wantPlan(t, decide(s), "ask gang-0 [{workers 1}]")
			for _, id := range []workload.ID{"gang-1", "gang-2"} {
				if why := s.Reason(id); why.Kind != workload.ReasonFit || !strings.Contains(why.Message, "when no other gang is in cluster") {
					t.Errorf("%s waits for %+v, want its turn", id, why)
				}
			}
			s.SetNode(nodeOf("other", 1, 0)) // another change gives no turn
			wantPlan(t, decide(s), "")
			ends(s)
			plan := text(decide(s))
			if want := "ask gang-1 [{workers 2}]"; !strings.HasPrefix(plan, want) || strings.Contains(plan, "gang-2") {
				t.Errorf("the plan is %q, want %q and nothing of gang-2", plan, want)
			}
		})
	}
}

// Nodes come one after the other. No gang behind the one that is shown takes them, or what was
// free before, as far as that one can use them; one before it does.
func TestNodesThatComeAreKeptForTheGangThatIsShown(t *testing.T) {
	t.Parallel()
	s := askingState(t, showingConfig(100), nodeOf("cpu", 8, 0))
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 3, 1, 1)})
	wantPlan(t, decide(s), "ask gang-1 [{workers 3}]")
	s.Provisioned("gang-1", start)
	enqueue(s, 2, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	enqueue(s, 3, "queue", []workload.PodSet{setOf("workers", 1, 1, 0)})
	s.SetNode(nodeOf("first", 8, 1))
	wantPlan(t, decide(s), "admit gang-3") // which takes nothing that gang-1 can use
	if why := s.Reason("gang-2"); why.Kind != workload.ReasonBehindHead || !strings.Contains(why.Message, "that one would lack places for 3 pods instead of 2") {
		t.Errorf("gang-2 waits for %+v", why)
	}
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	wantPlan(t, decide(s), "admit gang-0")
	for _, name := range []string{"second", "third"} {
		s.SetNode(nodeOf(name, 8, 1))
		wantPlan(t, decide(s), "")
	}
	s.SetNode(nodeOf("fourth", 8, 2))
	wantPlan(t, decide(s), "admit gang-1, admit gang-2")
}

// When the time of the gang is over, what was kept for it is free.
func TestWhatWasKeptForAGangThatIsShownIsFreeThen(t *testing.T) {
	t.Parallel()
	s := askingState(t, showingConfig(100), nodeOf("cpu", 8, 0))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 3, 1, 1)})
	decide(s)
	s.SetNode(nodeOf("first", 8, 1))
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	wantPlan(t, decide(s), "")
	s.Dequeue("gang-0")
	wantPlan(t, decide(s), "admit gang-1")
}

// A turn is of a cluster, whatever the queue; requests of other classes need none.
func TestATurnIsOfACluster(t *testing.T) {
	t.Parallel()
	c := showingConfig(100)
	other := c.ClusterQueues[0]
	other.Name = "other"
	third := c.ClusterQueues[0]
	third.Name, third.AdmissionChecks = "third", []string{"requests"}
	c.ClusterQueues = append(c.ClusterQueues, other, third)
	check, config := c.AdmissionChecks[0], c.ProvisioningConfigs[0]
	check.Name, check.Parameters = "requests", &quota.CheckParameters{APIGroup: "kueue.x-k8s.io", Kind: "ProvisioningRequestConfig", Name: "requests"}
	config.Name, config.Class = "requests", "queued-provisioning.gke.io"
	c.AdmissionChecks, c.ProvisioningConfigs = append(c.AdmissionChecks, check), append(c.ProvisioningConfigs, config)
	s := askingState(t, c, nodeOf("cpu", 8, 0))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	enqueue(s, 1, "other", []workload.PodSet{setOf("workers", 1, 1, 1)})
	enqueue(s, 2, "third", []workload.PodSet{setOf("workers", 1, 1, 1)})
	wantPlan(t, decide(s), "ask gang-0 [{workers 1}], ask gang-2 [{workers 1}]")

	second := nodeOf("cpu", 8, 0)
	second.Cluster = "second"
	s = askingState(t, showingConfig(100), second, nodeOf("cpu", 8, 0))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
	wantPlan(t, decide(s), "ask gang-0 [{workers 1}], ask gang-1 [{workers 2}]")
}
