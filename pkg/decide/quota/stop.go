package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// QueueStop is an operator's order to admit nothing of a queue, in one or any of its
// namespaces, or of a ClusterQueue, until the hold is deleted. What was admitted goes on. It is
// Muster's own; Kueue's stopPolicy does the same in a manifest.
type QueueStop struct {
	Name string `json:"name"` // of the queue, or the ClusterQueue
	// Namespace of the queue; empty for all of its namespaces.
	Namespace string    `json:"namespace,omitempty"`
	Since     time.Time `json:"since"`
	By        string    `json:"by"`
	Why       string    `json:"why,omitempty"`
}

// Message reports that the queue is held.
func (h QueueStop) Message() string {
	what := fmt.Sprintf("queue %q", h.Name)
	if h.Namespace != "" {
		what += fmt.Sprintf(" of namespace %q", h.Namespace)
	}
	return h.message(what)
}

// OfClusterQueue reports that the ClusterQueue is held.
func (h QueueStop) OfClusterQueue() string { return h.message(fmt.Sprintf("clusterQueue %q", h.Name)) }

func (h QueueStop) message(what string) string { return since(what+" is held", h.Since, h.By, h.Why) }

// StoppedBy returns the hold of a queue in a namespace, that of all namespaces first; nil when
// no operator holds it.
func (t *Tree) StoppedBy(namespace, queue string) *QueueStop {
	return cmp.Or(t.holds[[2]string{"", queue}], t.holds[[2]string{namespace, queue}])
}

// ClusterQueueStoppedBy returns the hold of a ClusterQueue, nil when no operator holds it.
func (t *Tree) ClusterQueueStoppedBy(name string) *QueueStop { return t.clusterQueueHolds[name] }

// HeldBy returns what keeps workloads of a queue in a namespace, charged to a ClusterQueue,
// from being admitted; empty when nothing does.
func (t *Tree) HeldBy(namespace, queue, clusterQueue string) string {
	if h := t.StoppedBy(namespace, queue); h != nil {
		return h.Message()
	}
	if h := t.ClusterQueueStoppedBy(clusterQueue); h != nil {
		return h.OfClusterQueue()
	}
	if h := t.BudgetStoppedBy(namespace, queue); h != nil {
		return h.Message()
	}
	if why := t.inactive[clusterQueue]; why != "" {
		return why
	}
	if q := t.queues[clusterQueue]; q != nil && stops(q.StopPolicy) {
		return stopped("clusterQueue", q.Name, q.StopPolicy)
	}
	if l := t.Local(namespace, queue); l != nil && stops(l.StopPolicy) {
		return stopped("localQueue", l.Namespace+"/"+l.Name, l.StopPolicy)
	}
	return ""
}

// Held lists all that is held in the policy: by operators, by budgets, for being inactive, by
// manifests.
func (c Config) Held() []string {
	var held []string
	for _, h := range c.Holds {
		held = append(held, h.Message())
	}
	for _, h := range c.ClusterQueueHolds {
		held = append(held, h.OfClusterQueue())
	}
	for i := range c.BudgetHolds {
		held = append(held, c.BudgetHolds[i].Message())
	}
	inactive := c.Inactive()
	for _, name := range slices.Sorted(maps.Keys(inactive)) {
		held = append(held, inactive[name])
	}
	for _, q := range c.ClusterQueues {
		if stops(q.StopPolicy) {
			held = append(held, stopped("clusterQueue", q.Name, q.StopPolicy))
		}
	}
	for _, l := range c.LocalQueues {
		if stops(l.StopPolicy) {
			held = append(held, stopped("localQueue", l.Namespace+"/"+l.Name, l.StopPolicy))
		}
	}
	return held
}

func stops(policy string) bool { return policy != "" && policy != StopNone }

func stopped(what, name, policy string) string {
	if policy == Deleting {
		return fmt.Sprintf("%s %q is being deleted", what, name)
	}
	return fmt.Sprintf("%s %q is held (stopPolicy %s)", what, name, policy)
}
