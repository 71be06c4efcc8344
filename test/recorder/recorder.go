// Package recorder is a bystander that watches the nodes and pods of a cluster
// and checks at every event what Muster promises: no node is over-committed,
// every pod of a gang is bound to the node that it was sent to, and no gang has
// pods that run while others of it cannot be placed.
//
// It is not for looking at Muster: it knows the labels on pods, written here once
// more, and shares no code with the services whose word it checks.
package recorder

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Binding is where a pod of a gang was bound.
type Binding struct {
	Workload, Attempt, PodSet, Node string
}

// Report is what has been seen.
type Report struct {
	Events   int // of nodes and pods
	Bindings []Binding
	// Gangs are attempts of workloads that had pods running.
	Gangs int
	// Violations of what is promised at every moment.
	Violations []string
	// Partial are the times during which a gang had pods running and others that
	// the scheduler could not place: while it started, and after it had been
	// whole, when it was being healed.
	Starting, Healing Episodes
	// Used are, by workload, the requests of its pods times the seconds from their binding to
	// their end, as observed.
	Used map[string]map[corev1.ResourceName]float64
}

// Episodes of gangs that are not whole.
type Episodes struct {
	Count   int
	Longest time.Duration
}

func (e *Episodes) add(d time.Duration) {
	e.Count++
	e.Longest = max(e.Longest, d)
}

// Recorder watches until the context given to Start ends.
type Recorder struct {
	mu    sync.Mutex
	nodes map[string]amounts // allocatable
	pods  map[string]*pod
	used  map[string]amounts // by node
	gangs map[string]*gang
	seen  Report
	// spent are the sums of Report.Used of pods that have ended.
	spent map[string]map[corev1.ResourceName]float64
}

// pod is what matters of a pod.
type pod struct {
	name, node, pinned       string
	gang, set                string // empty on unmanaged pods
	requests                 amounts
	ended, running, homeless bool
	deleting                 bool
	held                     time.Time // since when it has been on its node; zero while it is on none
}

// holds reports whether the pod takes what it requests from a node.
func (p *pod) holds() bool { return p.node != "" && !p.ended }

// gang is an attempt of a workload.
type gang struct {
	pods  map[string]*pod
	whole bool      // all its pods have run at once
	since time.Time // of the episode; zero while there is none
}

// Start lists what is there and watches what comes, of everybody.
func Start(ctx context.Context, client kubernetes.Interface) (*Recorder, error) {
	r := &Recorder{nodes: map[string]amounts{}, pods: map[string]*pod{}, used: map[string]amounts{}, gangs: map[string]*gang{}, spent: map[string]map[corev1.ResourceName]float64{}}
	nodes := stream{
		list: func(ctx context.Context) ([]any, string, error) {
			list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, "", err
			}
			return pointers(list.Items), list.ResourceVersion, nil
		},
		watch: func(ctx context.Context, from string) (watch.Interface, error) {
			return client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: from})
		},
		all: r.allNodes, one: r.node,
	}
	pods := stream{
		list: func(ctx context.Context) ([]any, string, error) {
			list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, "", err
			}
			return pointers(list.Items), list.ResourceVersion, nil
		},
		watch: func(ctx context.Context, from string) (watch.Interface, error) {
			return client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: from})
		},
		all: r.allPods, one: r.pod,
	}
	for _, s := range []stream{nodes, pods} { // nodes first: pods are checked against them
		version, err := s.begin(ctx)
		if err != nil {
			return nil, fmt.Errorf("recorder: list: %w", err)
		}
		go s.run(ctx, version)
	}
	return r, nil
}

func pointers[T any](items []T) []any {
	all := make([]any, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// stream is a list and the watch that follows it.
type stream struct {
	list  func(context.Context) ([]any, string, error)
	watch func(context.Context, string) (watch.Interface, error)
	all   func([]any)
	one   func(watch.EventType, any)
}

func (s stream) begin(ctx context.Context) (version string, err error) {
	items, version, err := s.list(ctx)
	if err == nil {
		s.all(items)
	}
	return version, err
}

// run follows the watch; when it breaks, everything is listed again.
func (s stream) run(ctx context.Context, version string) {
	for ctx.Err() == nil {
		watching, err := s.watch(ctx, version)
		if err == nil {
			s.follow(watching)
		} else if !apierrors.IsTooManyRequests(err) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond): // the API server is away
			}
		}
		if again, err := s.begin(ctx); err == nil {
			version = again
		}
	}
}

func (s stream) follow(watching watch.Interface) {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if event.Type == watch.Error {
			return
		}
		s.one(event.Type, event.Object)
	}
}

// Report returns what has been seen so far. Episodes that go on are counted with
// their length until now.
func (r *Recorder) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.seen
	report.Used = map[string]map[corev1.ResourceName]float64{}
	for id, used := range r.spent {
		report.Used[id] = maps.Clone(used)
	}
	for _, p := range r.pods {
		spend(report.Used, p)
	}
	for _, g := range r.gangs {
		if !g.since.IsZero() {
			r.episodes(&report, g).add(time.Since(g.since))
		}
	}
	return report
}

func (r *Recorder) episodes(report *Report, g *gang) *Episodes {
	if g.whole {
		return &report.Healing
	}
	return &report.Starting
}

func (r *Recorder) violate(format string, args ...any) {
	const kept = 100
	if len(r.seen.Violations) < kept {
		r.seen.Violations = append(r.seen.Violations, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

func (r *Recorder) allNodes(items []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.nodes)
	for _, item := range items {
		n := item.(*corev1.Node)
		r.nodes[n.Name] = amountsOf(n.Status.Allocatable)
	}
}

func (r *Recorder) node(kind watch.EventType, object any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Events++
	n := object.(*corev1.Node)
	if kind == watch.Deleted {
		delete(r.nodes, n.Name)
		return
	}
	_, known := r.nodes[n.Name]
	r.nodes[n.Name] = amountsOf(n.Status.Allocatable)
	if !known {
		r.checkNode(n.Name)
	}
}
