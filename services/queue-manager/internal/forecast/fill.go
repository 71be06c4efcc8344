package forecast

import (
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Fill adds the estimates to workloads that wait.
func (f *Forecaster) Fill(records []workload.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range records {
		if made := f.made[records[i].ID]; made != nil && records[i].Phase == workload.Queued {
			records[i].SetEstimate(made)
		}
	}
}

// FillQueues adds what came of the estimates of queues.
func (f *Forecaster) FillQueues(queues []query.Queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range queues {
		if result, scored := f.results[queues[i].Name]; scored {
			queues[i].Estimates = &result
		}
	}
}

// FillNodes adds when the holders of nodes end as similar workloads did, where that says more than
// what they declare, and until when each node is held.
func (f *Forecaster) FillNodes(nodes []query.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Now()
	for i := range nodes {
		for k := range nodes[i].Holders {
			h := &nodes[i].Holders[k]
			h.Until = h.Until.OrLearned(f.ends[h.ID], now)
		}
		nodes[i].SetUntil()
	}
}
