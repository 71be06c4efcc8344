package state

import (
	"encoding/json"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

// changeSet collects changes until they are taken.
type changeSet struct {
	added     map[workload.ID]json.RawMessage
	workloads map[workload.ID]*entry
	freed     map[workload.ID]bool
	asked     map[workload.ID]bool
	reserved  map[workload.ID]*entry
	moved     map[workload.ID]*entry
	moves     []workload.ID // the last of each in moved counts
	nodes     map[admission.NodeKey]bool
	history   []HistoryRow
	messages  []Message
	grown     int
}

func newChangeSet() *changeSet {
	return &changeSet{
		added: map[workload.ID]json.RawMessage{}, workloads: map[workload.ID]*entry{},
		freed: map[workload.ID]bool{}, asked: map[workload.ID]bool{}, reserved: map[workload.ID]*entry{}, moved: map[workload.ID]*entry{},
		nodes: map[admission.NodeKey]bool{},
	}
}

func (c *changeSet) move(e *entry) {
	c.moved[e.ID] = e
	c.moves = append(c.moves, e.ID)
}

func (c *changeSet) node(key admission.NodeKey) { c.nodes[key] = true }
