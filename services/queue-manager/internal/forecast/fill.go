package forecast

import (
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Fill adds the estimates to workloads that wait. Those that the last forecast left out get one
// without a time.
func (f *Forecaster) Fill(records []workload.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range records {
		r := &records[i]
		if r.Phase != workload.Queued {
			continue
		}
		if made := f.made[r.ID]; made != nil {
			r.SetEstimate(made)
		} else if f.beyond.has(r) {
			r.SetEstimate(&workload.Estimate{MadeAt: f.beyond.at, Unknown: tooFarBack})
		}
	}
}

// tooFarBack is why a workload beyond the bounds of a forecast has no time.
const tooFarBack = "it is too far back in its queue"

// beyond are the waiting workloads that a forecast left out, behind others of their queues.
type beyond struct {
	at     time.Time
	queues map[string]bool      // of which as many were read as are of each
	read   map[workload.ID]bool // in these queues, and all that hold places
}

// beyondOf returns those that were left out of a live state.
func beyondOf(at time.Time, live store.LiveState) beyond {
	b := beyond{at: at, queues: map[string]bool{}, read: map[workload.ID]bool{}}
	waiting := map[string]int{}
	for i := range live.Workloads {
		r := &live.Workloads[i].Record
		b.read[r.ID] = true
		if r.Phase == workload.Queued {
			waiting[r.Queue]++
		}
	}
	for queue, n := range waiting {
		b.queues[queue] = n >= live.Part
	}
	return b
}

// has reports whether a workload that waits was left out: it was submitted before the forecast,
// and is not among what was read of its queue.
func (b beyond) has(r *workload.Record) bool {
	return b.queues[r.Queue] && !b.read[r.ID] && r.Times.Submitted.Before(b.at)
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
