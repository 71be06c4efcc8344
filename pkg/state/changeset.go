package state

import (
	"encoding/json"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

// changeSet collects changes until they are taken.
type changeSet struct {
	added     map[workload.ID]json.RawMessage
	workloads map[workload.ID]*entry
	freed     map[workload.ID]bool
	asked     map[workload.ID]bool
	// heardAgain are those whose deadlines begin again.
	heardAgain map[workload.ID]bool
	// freedUsage has what history reports about attempts that have just been freed.
	freedUsage    map[workload.ID]freedUsage
	reserved      map[workload.ID]*entry
	replaced      map[workload.ID]*entry
	replacedOrder []workload.ID // the last of each in replaced counts
	nodes         map[admission.NodeKey]bool
	history       []HistoryRow
	messages      []Message
	grown         int
}

// freedUsage is what is known of the work of an attempt when it frees its places.
type freedUsage struct{ checkpoint time.Time }

func newChangeSet() *changeSet {
	return &changeSet{
		added: map[workload.ID]json.RawMessage{}, workloads: map[workload.ID]*entry{},
		freed: map[workload.ID]bool{}, asked: map[workload.ID]bool{}, heardAgain: map[workload.ID]bool{}, freedUsage: map[workload.ID]freedUsage{}, reserved: map[workload.ID]*entry{}, replaced: map[workload.ID]*entry{},
		nodes: map[admission.NodeKey]bool{},
	}
}

func (c *changeSet) places(e *entry) {
	c.replaced[e.ID] = e
	c.replacedOrder = append(c.replacedOrder, e.ID)
}

func (c *changeSet) node(key admission.NodeKey) { c.nodes[key] = true }
