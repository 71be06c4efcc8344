package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

const (
	// StraysEvery is how often pods are looked for that are not of Muster.
	StraysEvery = 2 * time.Second
	// strayAfter is for how long a pod must have been one before it is dealt with: the
	// caches of pods and of what made them do not change at the same moment.
	strayAfter = 3 * time.Second
	// asksPerRound bounds the questions to the API server for one namespace in one
	// round: a tenant who makes controllers all day delays what is done in its own
	// namespace, and nothing elsewhere.
	asksPerRound = 200
)

// controllerReader is the API server, to find what controls a controller of pods.
type controllerReader interface {
	ControllerOf(ctx context.Context, namespace string, of gang.Controller) (uid string, err error)
}

// strayCache lists the pods of a namespace, those with our labels apart.
type strayCache interface {
	PodsIn(namespace string) (ours, others []gang.Pod)
}

// strays deals with pods that are not of Muster, in the namespaces of queues, as the
// queue's rule asks for. Rounds come one after the other.
type strays struct {
	workloads *workloads
	owners    *owners
	cluster   interface {
		podDeleter
		controllerReader
	}
	cache   strayCache
	look    func(workload.ID)
	logger  *zap.Logger
	metrics *Metrics
	now     func() time.Time

	since map[string]time.Time // by UID of the pod
	shown map[string]bool      // namespaces in the metric

	mu    sync.Mutex
	rules map[string]string // strayPods by namespace, as of the last round
}

// strayRound is one look at all pods that are not of Muster.
type strayRound struct {
	*strays
	owned        func() map[string]workload.ID // of what was created, by UID; made when first asked for
	found        map[string]time.Time          // since when, by UID of the pod
	numbers      map[string]int                // of strays by namespace
	controllerOf map[string]string             // of the controllers of the pods that there are
	asks         int                           // that are left for the namespace
}

// errLater is returned once a namespace has had its questions of this round.
var errLater = errors.New("the namespace has had its questions of this round")

// ruleOf is the rule for a namespace; empty when there is none.
func (s *strays) ruleOf(namespace string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rules[namespace]
}

// round deals with all namespaces. rules are the rules by namespace; those of count
// need not be there. Namespaces of AppWrappers are looked at without a rule, too: what
// stands between wrapped objects and their pods is found here.
func (s *strays) round(ctx context.Context, rules map[string]string) {
	s.mu.Lock()
	s.rules = rules
	s.mu.Unlock()
	namespaces := slices.Collect(maps.Keys(rules))
	for _, t := range s.workloads.all() {
		if command := t.wanted(); command != nil && command.State == event.Present && isBundle(command) {
			namespaces = append(namespaces, command.Namespace)
		}
	}
	slices.Sort(namespaces)
	r := &strayRound{strays: s, owned: sync.OnceValue(s.ownedBy), found: map[string]time.Time{}, numbers: map[string]int{}, controllerOf: map[string]string{}}
	for _, namespace := range slices.Compact(namespaces) {
		if ctx.Err() != nil {
			return
		}
		r.asks = asksPerRound
		r.namespace(ctx, namespace, rules[namespace])
	}
	s.finish(r)
}

// finish keeps what the round has found, and forgets what is not there any more.
func (s *strays) finish(r *strayRound) {
	for namespace, number := range r.numbers {
		s.metrics.strays.WithLabelValues(namespace).Set(float64(number))
	}
	for namespace := range s.shown {
		if _, still := r.numbers[namespace]; !still {
			s.metrics.strays.DeleteLabelValues(namespace)
		}
	}
	s.shown = map[string]bool{}
	for namespace := range r.numbers {
		s.shown[namespace] = true
	}
	s.owners.controllers.keep(r.controllerOf)
	s.since = r.found
}

// ownedBy returns the workloads of what was created and of their RayClusters, by UID.
func (s *strays) ownedBy() map[string]workload.ID {
	owned := map[string]workload.ID{}
	for _, t := range s.workloads.all() {
		status, known := t.last()
		if !known {
			continue
		}
		created, clusters := s.owners.created(status)
		for _, uid := range slices.Concat(created, clusters) {
			owned[uid] = status.Workload
		}
	}
	return owned
}

// isDecidable reports whether UIDs decide if a pod with our labels is of the workload
// that it names: what was created of it is known.
func (s *strays) isDecidable(pod gang.Pod) bool {
	t := s.workloads.get(pod.Workload)
	command := t.wanted()
	if command == nil {
		return false
	}
	status, _ := t.last()
	return command.State == event.Present && status.Created && status.Attempt == command.Attempt &&
		(status.UID != "" || len(status.Objects) > 0)
}
