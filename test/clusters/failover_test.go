package clusters

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// A gang of a queue that fails over starts in the other cluster when its own is cut off from
// NATS for longer than its permission: not before the dispatcher there has stopped it. The
// cluster that comes back has nothing of it, and takes gangs again.
func TestAGangFailsOverToTheOtherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Options{
		Rules: workload.Rules{OnLostCluster: workload.FailOver}, ClusterSilence: 10 * time.Second, Permission: 10 * time.Second,
	})
	w.nodes(0, 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	a := w.submit(stack.RayCluster("a", 1, 2))
	w.runsIn(a, 1, w.second.Name)
	both := recordBoth(t, a, w.clients())
	w.until("the object carries the mark", func() bool {
		for _, pod := range podsOf(t, w.second.Kube, a) {
			if pod.Labels[kube.PermissionLabel] != kube.PermissionNeeded {
				return false
			}
		}
		return true
	})
	w.nodes(2, 0, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")

	w.second.Cut()
	w.until("the dispatcher has stopped the gang without a word of queue-manager", func() bool { return len(podsOf(t, w.second.Kube, a)) == 0 })
	if record := w.one(a); record.Attempt != 1 || record.Cluster != w.second.Name {
		t.Errorf("the gang is in attempt %d in %q before the permission and its margin have run out", record.Attempt, record.Cluster)
	}
	w.runsIn(a, 2, w.Pool)

	w.second.Mend()
	b := w.submit(stack.Annotated(stack.RayCluster("b", 1, 2), kube.ClustersKey, workload.ClusterNameKey+"="+w.second.Name))
	w.runsIn(b, 1, w.second.Name)
	w.runsIn(a, 2, w.Pool)
	for _, twice := range both.twice() {
		t.Error(twice)
	}
}

// A leader that begins while a cluster is returning gives it no gang before the dispatcher there has
// reported that nothing is left: that its gangs have failed over was in the term of another one.
func TestANewLeaderWaitsForAClusterThatReturns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Options{
		Rules: workload.Rules{OnLostCluster: workload.FailOver}, ClusterSilence: 10 * time.Second, Permission: 10 * time.Second,
	})
	w.nodes(0, 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	a := w.submit(stack.RayCluster("a", 1, 2))
	w.runsIn(a, 1, w.second.Name)
	w.nodes(2, 0, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	w.second.Cut()
	w.runsIn(a, 2, w.Pool)
	if err := w.second.StopService(stack.Dispatcher); err != nil {
		t.Fatal(err)
	}
	w.second.Mend()
	w.until("the second cluster is returning", func() bool { return w.states()[w.second.Name] == query.ClusterReturning })
	if err := w.StopService(stack.QueueManager); err != nil {
		t.Fatal(err)
	}
	b := w.submit(stack.Annotated(stack.RayCluster("b", 1, 2), kube.ClustersKey, workload.ClusterNameKey+"="+w.second.Name))
	if err := w.StartService(t.Context(), stack.QueueManager); err != nil {
		t.Fatal(err)
	}
	w.waits(b, "is back, and has not yet reported that nothing is left there")
	if err := w.second.StartService(t.Context(), stack.Dispatcher); err != nil {
		t.Fatal(err)
	}
	w.runsIn(b, 1, w.second.Name)
}

// A gang that its dispatcher has stopped, because the cluster was cut off for longer than its
// permission, starts again in the same cluster when that is back before queue-manager moved it.
func TestAStoppedGangStartsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Options{Rules: workload.Rules{OnLostCluster: workload.FailOver}, Permission: 10 * time.Second})
	w.nodes(0, 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	a := w.submit(stack.RayCluster("a", 1, 2))
	w.runsIn(a, 1, w.second.Name)
	w.second.Cut()
	w.until("the dispatcher has stopped the gang", func() bool { return len(podsOf(t, w.second.Kube, a)) == 0 })
	w.second.Mend()
	w.runsIn(a, 2, w.second.Name)
}

// incarnations has the bound pods of one workload in each cluster, as the API servers tell.
type incarnations struct {
	mu    sync.Mutex
	live  map[string]map[string]bool // by cluster and pod
	found []string
}

// recordBoth watches the pods of a workload in all clusters until the test ends.
func recordBoth(t *testing.T, id workload.ID, clients map[string]kubernetes.Interface) *incarnations {
	t.Helper()
	all := &incarnations{live: map[string]map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for cluster := range clients {
		all.live[cluster] = map[string]bool{}
	}
	for cluster, client := range clients {
		running.Go(func() {
			for ctx.Err() == nil { // a watch ends now and then, and begins with all that is there
				watching, err := client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{LabelSelector: kube.WorkloadLabel + "=" + string(id)})
				if err != nil {
					continue
				}
				for e := range watching.ResultChan() {
					if pod, is := e.Object.(*corev1.Pod); is {
						all.note(cluster, pod, e.Type == watch.Deleted)
					}
				}
			}
		})
	}
	return all
}

func (a *incarnations) note(cluster string, pod *corev1.Pod, gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if gone || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		delete(a.live[cluster], string(pod.UID))
		return
	}
	a.live[cluster][string(pod.UID)] = true
	for other, pods := range a.live {
		if other != cluster && len(pods) > 0 {
			a.found = append(a.found, fmt.Sprintf("pod %s runs in %s while %d pods of the gang run in %s", pod.Name, cluster, len(pods), other))
		}
	}
}

func (a *incarnations) twice() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found
}
