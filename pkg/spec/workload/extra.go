package workload

// Extra is what records have at times: one that waits has an estimate, one that has run may
// have checkpoints. It is apart, because a million may wait. It never changes; records share
// it.
type Extra struct {
	// LastSaved is what the workload has reported about its checkpoints; nil before the first
	// report.
	LastSaved *Saved `json:"saved,omitempty"`
	// NextStart says when a workload that waits will start. It is in answers only, and nil
	// until that was estimated.
	NextStart *Estimate `json:"estimate,omitempty"`
}

// Saved returns what the workload has reported about its checkpoints; nil before the first
// report.
func (r *Record) Saved() *Saved {
	if r.Extra == nil {
		return nil
	}
	return r.Extra.LastSaved
}

// SetSaved replaces what the workload has reported about its checkpoints.
func (r *Record) SetSaved(s *Saved) { r.Extra = &Extra{LastSaved: s, NextStart: r.Estimate()} }

// Estimate returns when a workload that waits will start; nil when that is not estimated.
func (r *Record) Estimate() *Estimate {
	if r.Extra == nil {
		return nil
	}
	return r.Extra.NextStart
}

// SetEstimate replaces when a workload will start.
func (r *Record) SetEstimate(e *Estimate) { r.Extra = &Extra{LastSaved: r.Saved(), NextStart: e} }
