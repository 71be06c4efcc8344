package book

import (
	"cmp"
	"fmt"

	"muster.dev/muster/pkg/quota"
)

// Place is where workloads are submitted: a queue in a namespace.
type Place struct{ Namespace, Queue string }

// Compare orders places by namespace and queue.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Queue, q.Queue))
}

// Places says how many workloads are live in which place.
func (b *Book) Places() map[Place]int {
	places := map[Place]int{}
	for e := range b.live.All() {
		places[Place{e.Namespace, e.Queue}]++
	}
	return places
}

// Govern replaces queues and policy, which are valid, at a version of the ledger.
// Who waits and who has places stays; the next Decide looks at everything anew.
func (b *Book) Govern(queues []Queue, policy quota.Config, version int64) {
	tree, err := quota.New(PolicyOf(queues, policy))
	if err != nil {
		panic(fmt.Sprintf("a policy that is not valid was stored: %v", err)) // what is stored has been checked
	}
	b.queues, b.policy, b.version = map[string]Queue{}, policy, version
	for _, queue := range queues {
		b.queues[queue.Name] = queue
	}
	b.admission.Reconfigure(tree)
	for e := range b.live.All() {
		b.schedule(e) // the rules of its queue may be others
	}
}
