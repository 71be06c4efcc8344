package workload

import "time"

// ForTenant returns the record with its reason and estimate as their ForTenant has them.
func (r Record) ForTenant() Record {
	r.Reason = r.Reason.ForTenant()
	if e := r.Estimate(); e != nil {
		r.SetEstimate(e.ForTenant())
	}
	return r
}

// Record is a workload with the state of its life, as queue-manager stores and
// shows it.
type Record struct {
	Workload
	Phase   Phase `json:"phase"`
	Attempt int   `json:"attempt"` // 1 for the first; each eviction adds one
	// Cluster is where the current attempt lives; empty while queued.
	Cluster    string      `json:"cluster,omitempty"`
	Placements []Placement `json:"placements,omitempty"`
	// Flavors from which the current attempt is charged; empty without quota.
	Flavors []PodSetFlavors `json:"flavors,omitempty"`
	// Reason is why the workload waits, what keeps it from starting, or why it
	// ended; nil when all is well.
	Reason *Reason `json:"reason,omitempty"`
	// Position in its queue, from 1; 0 when it does not wait.
	Position int32 `json:"position,omitempty"`
	// CancelRequested: the workload is being or will be torn down for good.
	CancelRequested bool `json:"cancelRequested,omitempty"`
	// Holding is true while pods of the workload hold capacity or may do so: from its
	// admission until they have been observed gone, also after its end.
	Holding bool `json:"holding,omitempty"`
	// Requeues counts the times that it was queued again because it did not become
	// ready or lost pods; NotBefore is when it takes part in the queue again.
	Requeues  uint16    `json:"requeues,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Hold keeps it from admission; nil when it is not held.
	Hold *Hold `json:"hold,omitempty"`
	// EvictAt has two meanings. Of a workload that is being torn down it is when its
	// objects are deleted; until then it may save its work. Of one that runs it is an
	// announcement: when its pods on a drained node are moved.
	EvictAt time.Time `json:"evictAt,omitzero"`
	Times   Times     `json:"times"`
	*Extra
	// Provisioning is the last request for nodes, and the AdmissionChecks that it was put to
	// last; nil before the first.
	Provisioning *Provisioning `json:"provisioning,omitempty"`
}

// MapTimes replaces each time of the record's own by what the function makes of it: the
// stored ones, not those of its reason or estimate.
func (r *Record) MapTimes(change func(time.Time) time.Time) {
	for _, t := range []*time.Time{
		&r.NotBefore, &r.EvictAt, &r.Times.Submitted, &r.Times.Admitted, &r.Times.Dispatched, &r.Times.Running, &r.Times.Finished,
	} {
		*t = change(*t)
	}
}
