// Package watch brings what happens to the nodes and pods of a cluster into a
// picture.
//
// Three watches: nodes; pods of workloads, whatever their phase, for their end
// is news too; and all other pods, but only while they are bound and have not
// ended, which the API server filters. None of them keeps the objects.
package watch

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/capacity-watcher/internal/picture"
)

// Target is changed by what is seen.
type Target interface {
	// Apply runs the change on the picture, alone.
	Apply(change func(*picture.Picture))
}

// Options says what to watch.
type Options struct {
	Client       kubernetes.Interface
	Metadata     metadata.Interface
	Cluster      string
	NodeSelector string // labels of the nodes that count; empty for all
	Logger       *zap.Logger
}

// takesRoom selects pods that are bound and whose containers have not all ended.
const takesRoom = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

// Run watches until ctx ends. It calls listed once, when everything that
// existed at the start is in the picture.
func Run(ctx context.Context, o Options, target Target, listed func()) {
	v := &view{Options: o, target: target}
	core := o.Client.CoreV1().RESTClient()
	var running sync.WaitGroup
	var missing atomic.Int32 // lists of the first round
	start := func(resource, labels, fields string, kind any, into func(listed func()) cache.ReflectorStore) {
		missing.Add(1)
		store := into(sync.OnceFunc(func() {
			if missing.Add(-1) == 0 {
				listed()
			}
		}))
		running.Add(1)
		go func() {
			defer running.Done()
			v.reflect(ctx, core, resource, labels, fields, kind, store)
		}()
	}
	missing.Add(1) // until all are started
	start("nodes", o.NodeSelector, "", &corev1.Node{}, v.nodes)
	// Each pod is in exactly one of these two; one of another Muster in the second.
	start("pods", kube.ClusterLabel+"="+o.Cluster, "", &corev1.Pod{}, v.members)
	start("pods", kube.ClusterLabel+"!="+o.Cluster, takesRoom, &corev1.Pod{}, v.unmanaged)
	// These are not waited for: until an owner is seen, what controls it is open.
	for _, resource := range owners {
		running.Go(func() { v.reflectOwners(ctx, resource) })
	}
	if missing.Add(-1) == 0 {
		listed()
	}
	running.Wait()
}

type view struct {
	Options
	target Target
}

func (v *view) reflect(ctx context.Context, client rest.Interface, resource, labels, fields string, kind any, into cache.ReflectorStore) {
	logger := zapr.NewLogger(v.Logger)
	source := cache.NewFilteredListWatchFromClient(client, resource, metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = labels, fields
	})
	cache.NewReflectorWithOptions(source, kind, into, cache.ReflectorOptions{
		Name: resource, Logger: &logger,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Cap: 5 * time.Second, Steps: 25, Factor: 2, Jitter: 0.5},
	}).RunWithContext(ctx)
}

func (v *view) nodes(listed func()) cache.ReflectorStore {
	return &store[*corev1.Node]{
		set: func(n *corev1.Node) {
			node := v.node(n)
			v.target.Apply(func(p *picture.Picture) { p.SetNode(node) })
		},
		remove: func(n *corev1.Node) { v.target.Apply(func(p *picture.Picture) { p.RemoveNode(n.Name) }) },
		replace: func(list []*corev1.Node) {
			nodes := make([]capacity.Node, 0, len(list))
			for _, n := range list {
				nodes = append(nodes, v.node(n))
			}
			v.target.Apply(func(p *picture.Picture) { p.ReplaceNodes(nodes) })
		},
		listed: listed,
	}
}

func (v *view) members(listed func()) cache.ReflectorStore {
	return &store[*corev1.Pod]{
		set: func(pod *corev1.Pod) {
			member := v.member(pod)
			v.target.Apply(func(p *picture.Picture) { p.SetMember(name(pod), member) })
		},
		remove: func(pod *corev1.Pod) { v.target.Apply(func(p *picture.Picture) { p.RemoveMember(name(pod)) }) },
		replace: func(list []*corev1.Pod) {
			members := make(map[picture.Pod]picture.Member, len(list))
			for _, pod := range list {
				members[name(pod)] = v.member(pod)
			}
			v.target.Apply(func(p *picture.Picture) { p.ReplaceMembers(members) })
		},
		listed: listed,
	}
}

func (v *view) unmanaged(listed func()) cache.ReflectorStore {
	of := func(pod *corev1.Pod) picture.Unmanaged {
		return picture.Unmanaged{Node: pod.Spec.NodeName, Requests: v.requests(pod), Ports: kube.HostPorts(&pod.Spec)}
	}
	return &store[*corev1.Pod]{
		set: func(pod *corev1.Pod) {
			seen := of(pod)
			v.target.Apply(func(p *picture.Picture) { p.SetUnmanaged(name(pod), seen) })
		},
		remove: func(pod *corev1.Pod) { v.target.Apply(func(p *picture.Picture) { p.RemoveUnmanaged(name(pod)) }) },
		replace: func(list []*corev1.Pod) {
			pods := make(map[picture.Pod]picture.Unmanaged, len(list))
			for _, pod := range list {
				pods[name(pod)] = of(pod)
			}
			v.target.Apply(func(p *picture.Picture) { p.ReplaceUnmanaged(pods) })
		},
		listed: listed,
	}
}

// node never fails: a node whose amounts cannot be counted offers nothing.
func (v *view) node(n *corev1.Node) capacity.Node {
	node, err := kube.Node(v.Cluster, n)
	if err != nil {
		v.Logger.Warn("node cannot be counted; it is taken as one that is not ready", zap.String("node", n.Name), zap.Error(err))
		return capacity.Node{Cluster: v.Cluster, Name: n.Name, Labels: n.Labels, Allocatable: resource.List{}}
	}
	return node
}

func (v *view) member(pod *corev1.Pod) picture.Member {
	attempt, err := strconv.Atoi(pod.Labels[kube.AttemptLabel])
	if err != nil {
		attempt = 0 // of no attempt: not a pod that Muster's templates made
	}
	member := picture.Member{
		Workload: workloadOf(pod), UID: string(pod.UID), Owner: ownerOf(pod),
		GangPod: event.GangPod{
			Name: pod.Name, Attempt: attempt, PodSet: pod.Labels[kube.PodSetLabel], Node: pod.Spec.NodeName,
			RayCluster: pod.Labels[kube.RayClusterLabel],
			Phase:      string(pod.Status.Phase), Deleting: pod.DeletionTimestamp != nil, Requests: v.requests(pod),
		},
	}
	if pod.Status.Phase == corev1.PodFailed {
		for _, container := range pod.Status.ContainerStatuses {
			if ended := container.State.Terminated; ended != nil {
				member.ExitCode = max(member.ExitCode, ended.ExitCode)
			}
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			member.Ready = condition.Status == corev1.ConditionTrue
		}
	}
	return member
}

// stranger is told of pods that carry the cluster's label, and no workload's id
// that Muster gives: not made by it, they take room all the same. No workload
// has this id.
const stranger workload.ID = "_"

func workloadOf(pod *corev1.Pod) workload.ID {
	label := pod.Labels[kube.WorkloadLabel]
	if !workload.ValidName(label) {
		return stranger
	}
	return workload.ID(label)
}

// requests never fails: the scheduler binds no pod whose requests exceed what
// can be counted, so of such a pod only its slot matters.
func (v *view) requests(pod *corev1.Pod) resource.List {
	requests, err := kube.Requests(pod)
	if err != nil {
		v.Logger.Warn("requests of a pod cannot be counted; only its slot is",
			zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.Error(err))
		return resource.List{resource.Pods: 1}
	}
	return requests
}

func name(pod *corev1.Pod) picture.Pod {
	return picture.Pod{Namespace: pod.Namespace, Name: pod.Name}
}
