package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	namespace  = "default"
	caseKey    = "case"
	plannedKey = "planned"
	device     = "example.com/gpu"
)

// lookEvery is how often to look for what the control plane does in its own time.
const lookEvery = 20 * time.Millisecond

// world is the nodes of one case, what runs there, and a gang. Cases do not see
// each other: all pods ask for nodes of their case.
type world struct {
	number  int
	nodes   []*corev1.Node
	foreign []*corev1.Pod
	sets    []*corev1.Pod // one of each pod set
	gang    *workload.Workload
	verdict placement.Verdict
}

func draw(r *rand.Rand, number int) *world {
	w := &world{number: number, gang: &workload.Workload{}}
	for i := range 2 + r.IntN(4) {
		w.nodes = append(w.nodes, drawNode(r, number, i))
	}
	for i := range r.IntN(3) {
		pod := drawPod(r, number)
		pod.Name, pod.Spec.NodeName, pod.Spec.NodeSelector = fmt.Sprintf("foreign-%d-%d", number, i), w.nodes[r.IntN(len(w.nodes))].Name, nil
		pod.Spec.Affinity = nil
		w.foreign = append(w.foreign, pod)
	}
	sets := 1 + r.IntN(3)
	for i := range sets {
		pod := drawPod(r, number)
		name := fmt.Sprintf("set-%d", i)
		pod.Labels["set"] = name
		w.sets = append(w.sets, pod)
		w.gang.PodSets = append(w.gang.PodSets, workload.PodSet{Name: name, Count: 1 + r.IntN(4)})
	}
	for i := range sets {
		template, err := kube.PodTemplate(&w.sets[i].Spec)
		if err != nil {
			panic(err) // the amounts above are small
		}
		w.gang.PodSets[i].Template = template
		w.addRules(r, i)
	}
	return w
}

func drawNode(r *rand.Rand, number, i int) *corev1.Node {
	name := fmt.Sprintf("case-%d-%d", number, i)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		kube.HostnameLabel: name, caseKey: strconv.Itoa(number), "rack": fmt.Sprint(r.IntN(3)),
	}}}
	if r.IntN(6) > 0 {
		n.Labels["zone"] = fmt.Sprint(r.IntN(2))
	}
	n.Spec.Unschedulable = r.IntN(12) == 0
	if r.IntN(6) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	n.Status.Allocatable = corev1.ResourceList{
		"cpu": *resource.NewQuantity(int64(2+r.IntN(6)), resource.DecimalSI), "memory": *resource.NewQuantity(int64(2+r.IntN(6))<<30, resource.BinarySI),
		"pods": *resource.NewQuantity(int64(2+r.IntN(6)), resource.DecimalSI),
	}
	if r.IntN(2) == 0 {
		n.Status.Allocatable[device] = *resource.NewQuantity(int64(1+r.IntN(4)), resource.DecimalSI)
	}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func drawPod(r *rand.Rand, number int) *corev1.Pod {
	requests := corev1.ResourceList{
		"cpu": *resource.NewQuantity(int64(r.IntN(3)), resource.DecimalSI), "memory": *resource.NewQuantity(int64(r.IntN(3))<<30, resource.BinarySI),
	}
	if r.IntN(3) == 0 {
		requests[device] = *resource.NewQuantity(int64(1+r.IntN(2)), resource.DecimalSI)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{caseKey: strconv.Itoa(number)}}}
	p.Spec.NodeSelector = map[string]string{caseKey: strconv.Itoa(number)}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}}
	if r.IntN(6) == 0 {
		port := int32(8000 + r.IntN(2))
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, HostIP: []string{"", "10.0.0.1"}[r.IntN(2)]}}
	}
	if r.IntN(3) == 0 {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	if r.IntN(5) == 0 {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "rack", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"0"}},
			}}},
		}}}
	}
	return p
}

// addRules gives a pod set rules about the gang's pods, to Muster and to the
// scheduler.
func (w *world) addRules(r *rand.Rand, i int) {
	key := func() string { return []string{kube.HostnameLabel, "rack", "zone"}[r.IntN(3)] }
	t, spec := &w.gang.PodSets[i].Template, &w.sets[i].Spec
	pods := func(set int) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: w.sets[set].Labels}
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if r.IntN(5) == 0 {
		own := w.gang.PodSets[i].Name
		t.Together = []workload.Together{{TopologyKey: key(), PodSets: []string{own}}}
		spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: t.Together[0].TopologyKey, LabelSelector: pods(i)},
		}}
	}
	if r.IntN(4) == 0 {
		other := r.IntN(len(w.sets))
		t.Apart = []workload.Apart{{TopologyKey: key(), PodSets: []string{w.gang.PodSets[other].Name}}}
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: t.Apart[0].TopologyKey, LabelSelector: pods(other)},
		}}
	}
	if r.IntN(3) == 0 {
		t.Spread = []workload.Spread{{TopologyKey: key(), MaxSkew: 1 + r.IntN(2)}}
		c := corev1.TopologySpreadConstraint{
			TopologyKey: t.Spread[0].TopologyKey, MaxSkew: int32(t.Spread[0].MaxSkew), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: pods(i),
		}
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c}
	}
}

func (w *world) createNodes(ctx context.Context, t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	for _, n := range w.nodes {
		if _, err := client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range w.foreign {
		for { // the namespace's service account comes a moment after the cluster
			_, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
			if apierrors.IsForbidden(err) && pause.For(ctx, lookEvery) == nil {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
}

// observe reads the nodes once the control plane has found them ready, and makes
// a fleet of what it reads.
func (w *world) observe(ctx context.Context, t *testing.T, client *kubernetes.Clientset) *placement.Fleet {
	t.Helper()
	f := placement.NewFleet()
	for _, made := range w.nodes {
		for {
			n, err := client.CoreV1().Nodes().Get(ctx, made.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeNotReady }) ||
				n.Spec.Unschedulable != slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeUnschedulable }) {
				if err := pause.For(ctx, lookEvery); err != nil {
					t.Fatal(err)
				}
				continue
			}
			observed, err := kube.Node("c", n)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range w.foreign {
				if p.Spec.NodeName == n.Name {
					requests, err := kube.Requests(p)
					if err != nil {
						t.Fatal(err)
					}
					observed.Unmanaged = observed.Unmanaged.Plus(requests)
					observed.UsedPorts = append(observed.UsedPorts, kube.HostPorts(&p.Spec)...)
				}
			}
			f.SetNode(observed)
			break
		}
	}
	return f
}

// createPods creates the gang's pods: pinned to their places when it fits, the
// last pod set first, so that the order of binding is not that of the plan.
func (w *world) createPods(ctx context.Context, t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	places := map[string][]string{}
	for _, p := range w.verdict.Placements {
		for range p.Pods {
			places[p.PodSet] = append(places[p.PodSet], p.Node)
		}
	}
	for i := len(w.sets) - 1; i >= 0; i-- {
		set := &w.gang.PodSets[i]
		for n := range set.Count {
			pod := w.sets[i].DeepCopy()
			pod.Name = fmt.Sprintf("case-%d-%s-%d", w.number, set.Name, n)
			if w.verdict.Outcome == placement.Fits {
				pod.Spec.NodeSelector[kube.HostnameLabel] = places[set.Name][n]
				pod.Annotations = map[string]string{plannedKey: places[set.Name][n]}
			}
			if _, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (w *world) String() string {
	var text strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintln(&text, n.Name, n.Labels, n.Spec.Taints, n.Spec.Unschedulable, n.Status.Allocatable)
	}
	for _, set := range w.gang.PodSets {
		fmt.Fprintf(&text, "%d of %s: %+v\n", set.Count, set.Name, set.Template)
	}
	return text.String()
}
