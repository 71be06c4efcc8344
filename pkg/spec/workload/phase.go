package workload

// Phase is where a workload is in its life.
type Phase string

// The phases. Cancelling is the teardown of a workload that had started and
// was cancelled; evicting is the teardown of one that goes back to its queue.
const (
	Queued     Phase = "queued"     // waits; nothing of it exists in Kubernetes
	Admitted   Phase = "admitted"   // a node is reserved for each pod, the command to start is recorded
	Dispatched Phase = "dispatched" // its objects exist
	Running    Phase = "running"    // all pods of the gang are ready on their nodes
	Evicting   Phase = "evicting"   // objects are being deleted; then queued again with the next attempt
	Cancelling Phase = "cancelling" // objects are being deleted; then cancelled
	Succeeded  Phase = "succeeded"
	Failed     Phase = "failed"
	Cancelled  Phase = "cancelled"
	Rejected   Phase = "rejected" // refused at submission; never stored as a workload
)

// transitions lists, for each phase, the phases that may follow it. A gang may
// be seen running, or its job ended, before the news of its creation arrives,
// hence the steps that jump over dispatched.
var transitions = map[Phase][]Phase{
	Queued:     {Admitted, Cancelled, Failed},
	Admitted:   {Dispatched, Running, Succeeded, Failed, Evicting, Cancelling},
	Dispatched: {Running, Succeeded, Failed, Evicting, Cancelling},
	Running:    {Succeeded, Failed, Evicting, Cancelling},
	Evicting:   {Queued, Cancelling, Succeeded, Failed},
	Cancelling: {Cancelled},
}

// MayBecome reports whether next may follow p.
func (p Phase) MayBecome(next Phase) bool {
	for _, allowed := range transitions[p] {
		if allowed == next {
			return true
		}
	}
	return false
}

// Started reports whether a workload of the phase has places and is not being torn down.
func (p Phase) Started() bool {
	switch p {
	case Admitted, Dispatched, Running:
		return true
	}
	return false
}

// Final reports whether the workload's fate is decided. Pods of a finished
// workload may still hold capacity until they are seen gone.
func (p Phase) Final() bool {
	switch p {
	case Succeeded, Failed, Cancelled, Rejected:
		return true
	}
	return false
}

// Phases lists all phases in the order of life.
func Phases() []Phase {
	return []Phase{Queued, Admitted, Dispatched, Running, Evicting, Cancelling, Succeeded, Failed, Cancelled, Rejected}
}
