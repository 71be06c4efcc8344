package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// ToCheck is the decision to put a workload to AdmissionChecks.
type ToCheck struct {
	Workload workload.ID
	Flavors  []workload.PodSetFlavors
	// Checks are all that it needs, also those that have agreed.
	Checks []string
	// Quota: it holds the quota of the flavors until they have answered. A workload for which
	// gangs have to be evicted holds none, and the gangs run on meanwhile.
	Quota bool
}

// putToChecks puts a workload that could start, or for which others could be evicted, to the
// checks that have not agreed yet. It reports whether there are any.
func (d *decision) putToChecks(w *Waiting, a quota.Assess, quota bool) bool {
	if w.Grows {
		return false
	}
	checks := w.queue.quota.Messaged(a.Flavors)
	if !slices.ContainsFunc(checks, func(check string) bool { return !slices.Contains(w.Ready, check) }) {
		return false
	}
	d.state.removeFromClass(w)
	w.Asked = &Asked{
		Flavors: a.Flavors, NoQuota: !quota,
		Checks: &workload.Reason{Kind: workload.ReasonAdmissionCheck, Message: "its AdmissionChecks have not answered yet"},
	}
	d.state.reserveQuota(w)
	if quota {
		d.noteUsage(w.queue, a)
		d.noteHeld(w)
	}
	d.plan.Checks = append(d.plan.Checks, ToCheck{Workload: w.Workload.ID, Flavors: a.Flavors, Checks: checks, Quota: quota})
	w.Reported = true // the state reports whom it waits for
	return true
}
