// Package watch records the nodes and pods of a cluster in an observed.Cache.
//
// It has watches of nodes; of pods of workloads in any phase, ended ones included; of other
// pods while they are bound and have not ended, which the API server filters; and of the
// metadata of pods' controllers and of namespaces. None of them keeps the objects. It also
// reads which kinds the API server serves. The package is not for interpreting or publishing them.
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

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

// Target receives the observations.
type Target interface {
	// Apply runs the change on the cache, excluding others.
	Apply(change func(*observed.Cache))
}

// Options are the settings of the watches.
type Options struct {
	Client       kubernetes.Interface
	Metadata     metadata.Interface
	Cluster      string
	NodeSelector string // labels of the nodes that count; empty for all
	Logger       *zap.Logger
}

// usesNode selects pods that are bound and whose containers have not all ended.
const usesNode = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

// Run watches until ctx ends. It calls listed once, when everything that existed at the
// start has been recorded.
func Run(ctx context.Context, o Options, target Target, listed func()) {
	v := &view{Options: o, target: target}
	core := o.Client.CoreV1().RESTClient()
	var running sync.WaitGroup
	var missing atomic.Int32 // lists of the first round
	first := func() (done func()) {
		missing.Add(1)
		return sync.OnceFunc(func() {
			if missing.Add(-1) == 0 {
				listed()
			}
		})
	}
	start := func(resource, labels, fields string, kind any, into func(listed func()) cache.ReflectorStore) {
		store := into(first())
		running.Add(1)
		go func() {
			defer running.Done()
			v.reflect(ctx, core, resource, labels, fields, kind, store)
		}()
	}
	allStarted := first()
	start("nodes", o.NodeSelector, "", &corev1.Node{}, v.nodes)
	// Each pod is in exactly one of these two; one of another Muster in the second.
	start("pods", kube.ClusterLabel+"="+o.Cluster, "", &corev1.Pod{}, v.members)
	start("pods", kube.ClusterLabel+"!="+o.Cluster, usesNode, &corev1.Pod{}, v.unmanaged)
	kindsRead := first()
	running.Go(func() { v.watchKinds(ctx, o.Client.Discovery(), kindsRead) })
	// The first list does not wait for owners: until one is recorded, its chain is open.
	for _, resource := range owners {
		running.Go(func() { v.reflectMetadata(ctx, resource, v.ownersOf()) })
	}
	// Nor for namespaces, which queue-manager misses only in queues that select them, nor for
	// their defaults. These come first, so that no namespace is published without; where they
	// cannot be listed, none count.
	limitsListed := make(chan struct{})
	running.Go(func() {
		v.reflect(ctx, core, "limitranges", "", "", &corev1.LimitRange{}, v.limits(sync.OnceFunc(func() { close(limitsListed) })))
	})
	running.Go(func() {
		select {
		case <-limitsListed:
		case <-time.After(limitsMost):
		case <-ctx.Done():
			return
		}
		v.reflectMetadata(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), v.namespaces())
	})
	allStarted()
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
			v.target.Apply(func(p *observed.Cache) { p.SetNode(node) })
		},
		remove: func(n *corev1.Node) { v.target.Apply(func(p *observed.Cache) { p.RemoveNode(n.Name) }) },
		replace: func(list []*corev1.Node) {
			nodes := make([]capacity.Node, 0, len(list))
			for _, n := range list {
				nodes = append(nodes, v.node(n))
			}
			v.target.Apply(func(p *observed.Cache) { p.ReplaceNodes(nodes) })
		},
		listed: listed,
	}
}

func (v *view) members(listed func()) cache.ReflectorStore {
	return &store[*corev1.Pod]{
		set: func(pod *corev1.Pod) {
			member := v.member(pod)
			v.target.Apply(func(p *observed.Cache) { p.SetMember(name(pod), member) })
		},
		remove: func(pod *corev1.Pod) { v.target.Apply(func(p *observed.Cache) { p.RemoveMember(name(pod)) }) },
		replace: func(list []*corev1.Pod) {
			members := make(map[observed.Pod]observed.Member, len(list))
			for _, pod := range list {
				members[name(pod)] = v.member(pod)
			}
			v.target.Apply(func(p *observed.Cache) { p.ReplaceMembers(members) })
		},
		listed: listed,
	}
}

func (v *view) unmanaged(listed func()) cache.ReflectorStore {
	of := func(pod *corev1.Pod) observed.Unmanaged {
		return observed.Unmanaged{Node: pod.Spec.NodeName, Requests: v.requests(pod), Ports: kube.HostPorts(&pod.Spec)}
	}
	return &store[*corev1.Pod]{
		set: func(pod *corev1.Pod) {
			seen := of(pod)
			v.target.Apply(func(p *observed.Cache) { p.SetUnmanaged(name(pod), seen) })
		},
		remove: func(pod *corev1.Pod) { v.target.Apply(func(p *observed.Cache) { p.RemoveUnmanaged(name(pod)) }) },
		replace: func(list []*corev1.Pod) {
			pods := make(map[observed.Pod]observed.Unmanaged, len(list))
			for _, pod := range list {
				pods[name(pod)] = of(pod)
			}
			v.target.Apply(func(p *observed.Cache) { p.ReplaceUnmanaged(pods) })
		},
		listed: listed,
	}
}

// node never fails: a node with quantities out of range offers nothing.
func (v *view) node(n *corev1.Node) capacity.Node {
	node, err := kube.Node(v.Cluster, n)
	if err != nil {
		v.Logger.Warn("cannot read the quantities of a node; publishing it as not ready", zap.String("node", n.Name), zap.Error(err))
		return capacity.Node{Cluster: v.Cluster, Name: n.Name, Labels: n.Labels, Allocatable: resource.List{}}
	}
	return node
}

func (v *view) member(pod *corev1.Pod) observed.Member {
	attempt, err := strconv.Atoi(pod.Labels[kube.AttemptLabel])
	if err != nil {
		attempt = 0 // not created from Muster's templates
	}
	member := observed.Member{
		Workload: workloadOf(pod), UID: string(pod.UID), Owner: ownerOf(pod),
		GangPod: event.GangPod{
			Name: pod.Name, Attempt: attempt, PodSet: pod.Labels[kube.PodSetLabel], Node: pod.Spec.NodeName,
			RayCluster: pod.Labels[kube.RayClusterLabel],
			Phase:      string(pod.Status.Phase), Deleting: pod.DeletionTimestamp != nil, Requests: v.requests(pod), Waits: waits(pod),
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

// unknownWorkload is the workload of pods with the cluster's label but without a valid
// workload id. Muster did not create them, but they use resources. No workload has this
// id.
const unknownWorkload workload.ID = "_"

func workloadOf(pod *corev1.Pod) workload.ID {
	label := pod.Labels[kube.WorkloadLabel]
	if !workload.ValidName(label) {
		return unknownWorkload
	}
	return workload.ID(label)
}

// requests never fails: the scheduler binds no pod whose requests are out of range, so
// such a pod counts as one pod without requests.
func (v *view) requests(pod *corev1.Pod) resource.List {
	requests, err := kube.Requests(pod)
	if err != nil {
		v.Logger.Warn("cannot read the requests of a pod; counting only its slot",
			zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.Error(err))
		return resource.List{resource.Pods: 1}
	}
	return requests
}

func name(pod *corev1.Pod) observed.Pod {
	return observed.Pod{Namespace: pod.Namespace, Name: pod.Name}
}
