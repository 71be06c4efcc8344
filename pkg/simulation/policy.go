package simulation

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/quota"
)

// Policy is a way to configure the queue, by the name that the field has for it.
type Policy struct {
	Name  string
	Means string // in a sentence for people
	queue book.Queue
}

// Queue returns the queue's settings; its name and namespaces are empty.
func (p Policy) Queue() book.Queue { return p.queue }

// Policies lists what can be simulated.
func Policies() []Policy {
	return []Policy{
		{"fcfs", "first come, first served: nobody passes", book.Queue{Strategy: quota.StrictFIFO}},
		{"first-fit", "whoever fits starts", book.Queue{Strategy: quota.BestEffortFIFO}},
	}
}

// ParsePolicy returns the policy of that name.
func ParsePolicy(name string) (Policy, error) {
	var names []string
	for _, policy := range Policies() {
		if policy.Name == name {
			return policy, nil
		}
		names = append(names, policy.Name)
	}
	return Policy{}, fmt.Errorf("policy %q: want one of %s", name, strings.Join(names, ", "))
}
