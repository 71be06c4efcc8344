package admission

import "muster.dev/muster/pkg/spec/workload"

// hasAmounts reports whether a reason has amounts that are lacking.
func hasAmounts(why *workload.Reason) bool {
	switch why.Kind {
	case workload.ReasonQuota, workload.ReasonFit, workload.ReasonTopology, workload.ReasonNeverFits:
		return true
	}
	return false
}

// waitsForQuota reports whether quota is what a workload lacks, even if it never fits.
func waitsForQuota(why *workload.Reason) bool {
	return why.Kind == workload.ReasonQuota || why.Kind == workload.ReasonNeverFits && why.Quota != nil
}

// nearer reports whether reason a lacks less than b.
func nearer(a, b workload.Reason) bool {
	if a.Shortage == nil || b.Shortage == nil {
		return b.Kind == workload.ReasonNoNodes || a.Kind == workload.ReasonUnknown || a.Kind == workload.ReasonTopology && a.Shortage == nil
	}
	return a.Shortage.Unplaced < b.Shortage.Unplaced
}
