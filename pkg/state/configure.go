package state

import (
	"cmp"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
)

// LocalQueueKey is where workloads are submitted: a queue in a namespace.
type LocalQueueKey struct{ Namespace, Queue string }

// Compare orders places by namespace and queue.
func (p LocalQueueKey) Compare(q LocalQueueKey) int {
	return cmp.Or(cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Queue, q.Queue))
}

// LiveByQueue returns how many workloads are live in which place.
func (s *State) LiveByQueue() map[LocalQueueKey]int {
	places := map[LocalQueueKey]int{}
	for e := range s.live.All() {
		places[LocalQueueKey{e.Namespace, e.Queue}]++
	}
	return places
}

// HeldQueues counts the queues of which nothing is admitted: each LocalQueue is one, and each
// queue in its other namespaces together.
func (s *State) HeldQueues() int {
	local := map[LocalQueueKey]bool{}
	for _, l := range s.policy.LocalQueues {
		local[LocalQueueKey{Namespace: l.Namespace, Queue: l.Name}] = true
	}
	held := 0
	for name, q := range s.queues {
		shared, open := false, false
		for _, namespace := range q.Namespaces {
			admits := s.admission.HeldBy(namespace, name) == ""
			switch {
			case !local[LocalQueueKey{Namespace: namespace, Queue: name}]:
				shared, open = true, open || admits
			case !admits:
				held++
			}
		}
		if shared && !open {
			held++
		}
	}
	return held
}

// ApplyConfiguration replaces queues and policy, which are valid, at a version of the ledger.
// Workloads keep their phases and places; the next Decide evaluates all that wait.
func (s *State) ApplyConfiguration(queues []Queue, policy quota.Config, version int64) {
	tree, err := quota.New(PolicyOf(queues, policy))
	if err != nil {
		panic(fmt.Sprintf("a policy that is not valid was stored: %v", err)) // what is stored has been checked
	}
	s.queues, s.policy, s.version = map[string]Queue{}, policy, version
	for _, queue := range queues {
		s.queues[queue.Name] = queue
	}
	s.admission.Reconfigure(tree)
	for e := range s.live.All() {
		s.setTimer(e) // the rules of its queue may be others
		if e.attemptState != nil {
			s.updateProgress(e)
		}
	}
}

// PolicyOf completes a policy by the queues that it does not name: each is a
// ClusterQueue without quota, and a LocalQueue in each of its namespaces.
func PolicyOf(queues []Queue, policy quota.Config) quota.Config {
	named, local := map[string]bool{}, map[[2]string]bool{}
	for _, q := range policy.ClusterQueues {
		named[q.Name] = true
	}
	for _, l := range policy.LocalQueues {
		local[[2]string{l.Namespace, l.Name}] = true
	}
	policy.ClusterQueues, policy.LocalQueues = slices.Clip(policy.ClusterQueues), slices.Clip(policy.LocalQueues)
	for _, q := range queues {
		for _, namespace := range q.Namespaces {
			if local[[2]string{namespace, q.Name}] {
				continue
			}
			if !named[q.Name] {
				named[q.Name] = true
				policy.ClusterQueues = append(policy.ClusterQueues, quota.ClusterQueue{Name: q.Name, Strategy: q.Strategy})
			}
			policy.LocalQueues = append(policy.LocalQueues, quota.LocalQueue{Namespace: namespace, Name: q.Name, ClusterQueue: q.Name})
		}
	}
	return policy
}
