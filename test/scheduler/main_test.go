// Package scheduler compares the verdicts of package placement with what the
// real kube-scheduler does.
package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/local/devcluster"
)

// cases is how many gangs are compared.
const cases = 60

// TestAgreesWithKubeScheduler: the pods of a gang that fits, pinned as planned,
// are all bound; those of a gang that does not fit, left to the scheduler, are
// not.
func TestAgreesWithKubeScheduler(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	client := start(ctx, t)
	r := rand.New(rand.NewPCG(1, 36))
	drawn := make([]*world, cases)
	for i := range drawn {
		drawn[i] = draw(r, i)
		drawn[i].createNodes(ctx, t, client)
	}
	fits, not := 0, 0
	for _, w := range drawn {
		nodes := w.observe(ctx, t, client)
		verdict := nodes.Solve(w.gang, placement.Budget)
		switch verdict.Outcome {
		case placement.Fits:
			fits++
			if err := certificate.Valid(nodes.Views(), w.gang, verdict.Placements); err != nil {
				t.Errorf("case %d: %v", w.number, err)
			}
		case placement.DoesNotFit:
			not++
			if err := certificate.Check(nodes.Views(), w.gang, verdict.Certificate); err != nil {
				t.Errorf("case %d: %v", w.number, err)
			}
		default:
			t.Fatalf("case %d: %s", w.number, verdict.Outcome)
		}
		w.verdict = verdict
		w.createPods(ctx, t, client)
	}
	for _, w := range drawn {
		w.compare(ctx, t, client)
	}
	t.Logf("%d gangs fit and were bound as planned, %d do not and were not bound whole", fits, not)
	if fits < cases/5 || not < cases/5 {
		t.Error("the cases are not varied enough to tell anything")
	}
}

// start runs a dev cluster of the test's own.
func start(ctx context.Context, t *testing.T) *kubernetes.Clientset {
	t.Helper()
	if _, err := devcluster.Find(""); err != nil {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			t.Fatalf("the dev cluster is required: %v", err)
		}
		t.Skipf("no dev cluster: %v", err)
	}
	cluster, err := devcluster.Start(ctx, devcluster.Options{Name: fmt.Sprintf("scheduler-%d", os.Getpid()), Fleet: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 500, 500
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// compare waits until the scheduler has looked at each pod and holds its answer
// against the verdict.
func (w *world) compare(ctx context.Context, t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	fits := w.verdict.Outcome == placement.Fits
	var pods []corev1.Pod
	w.until(ctx, t, client, func(seen []corev1.Pod) bool {
		pods = seen
		return !slices.ContainsFunc(seen, func(p corev1.Pod) bool {
			return p.Spec.NodeName == "" && (fits || !unschedulable(&p))
		})
	})
	bound := 0
	for _, p := range pods {
		if p.Spec.NodeName == "" {
			continue
		}
		bound++
		if planned := p.Annotations[plannedKey]; fits && planned != p.Spec.NodeName {
			t.Errorf("case %d: %s is bound to %s, planned %s", w.number, p.Name, p.Spec.NodeName, planned)
		}
	}
	if bound == len(pods) != fits {
		t.Errorf("case %d: %s, and the scheduler bound %d of %d pods\n%s", w.number, w.verdict.Outcome, bound, len(pods), w)
	}
}

func unschedulable(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// until waits for the pods of the case, told by a watch.
func (w *world) until(ctx context.Context, t *testing.T, client *kubernetes.Clientset, done func([]corev1.Pod) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	options := metav1.ListOptions{LabelSelector: caseKey + "=" + strconv.Itoa(w.number) + ",set"}
	list, err := client.CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	options.ResourceVersion = list.ResourceVersion
	watch, err := client.CoreV1().Pods(namespace).Watch(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	pods := list.Items
	for !done(pods) {
		event, open := <-watch.ResultChan()
		if !open {
			var left []string
			for _, p := range pods {
				if p.Spec.NodeName == "" {
					left = append(left, fmt.Sprint(p.Name, " for ", p.Annotations[plannedKey], " ", p.Status.Conditions))
				}
			}
			t.Errorf("case %d: %s, not bound: %v\n%s", w.number, w.verdict.Outcome, left, w)
			return
		}
		if pod, ok := event.Object.(*corev1.Pod); ok {
			i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == pod.Name })
			pods[i] = *pod
		}
	}
}
