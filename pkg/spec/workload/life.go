package workload

import (
	"slices"
)

// Life has the rules that a workload asks for. A field that is empty or zero is as the
// queue has it.
type Life struct {
	// ReadyDeadline is how long a gang may take from its admission to the creation of
	// its object, and from there, or from the loss of a pod, until all its pods are
	// ready.
	ReadyDeadline Duration `json:"readyDeadline,omitzero"`
	// OnPodLoss is HealOnLoss or EvictOnLoss.
	OnPodLoss OnLoss `json:"onPodLoss,omitempty"`
	// Start is StartEarly or StartWhole.
	Start Start `json:"start,omitempty"`
	// Moves: the object that a user made in a cluster stays there suspended, and Muster creates
	// another one where the gang is admitted. A queue has none.
	Moves bool `json:"moves,omitempty"`
	// CheckpointInterval is how often the workload saves its work: an eviction is taken to
	// lose the work since the last checkpoint, and never more than this. With zero it loses
	// all since the admission.
	CheckpointInterval Seconds `json:"checkpointInterval,omitzero"`
	// CheckpointGrace is the time between the announcement of an eviction that
	// could wait, such as a preemption, and the deletion.
	CheckpointGrace Duration `json:"checkpointGrace,omitzero"`
	// MaxRunTime ends the workload this long after all its pods were ready; zero is no
	// limit.
	MaxRunTime Duration `json:"maxRunTime,omitzero"`
	// IdleTime ends a RayCluster that has been idle for this time: none of its worker
	// groups has a pod, or, if the annotation muster.dev/last-used is on it, it has not
	// been used since then. Zero lets it be idle.
	IdleTime Duration `json:"idleTime,omitzero"`
	// RunTime is how long the workload is expected to hold its places, at most, from
	// its admission on. Backfill plans with it, and no workload is ended for exceeding
	// it; zero means unknown.
	RunTime Duration `json:"runTime,omitzero"`
	// Tolerance has the AppWrapper's own rules for failed attempts; nil means the
	// queue's rules. A queue has none.
	Tolerance *Tolerance `json:"tolerance,omitempty"`
}

// Tolerance is how often and how a workload is retried. What is not set is as the
// queue has it.
type Tolerance struct {
	// Retries is how often it is queued again.
	Retries *int `json:"retries,omitempty"`
	// Pause comes before each retry, instead of the queue's back-off.
	Pause Duration `json:"pause,omitzero"`
	// RetryFailed: an attempt whose objects report their failure counts as one
	// that lost pods, and is tried again.
	RetryFailed bool `json:"retryFailed,omitempty"`
	// LossDeadline is how long it may take from the loss of a pod until all pods
	// are ready again; the ready deadline if it is zero.
	LossDeadline Duration `json:"lossDeadline,omitzero"`
	// ForceAfter is as in Rules.
	ForceAfter Duration `json:"forceAfter,omitzero"`
	// SuccessTTL is how long the object stays after it has succeeded. It is here for
	// the queue's limit only: the object's controller deletes it.
	SuccessTTL Duration `json:"successTTL,omitzero"`
	// TerminalExitCodes end the workload: a container that ends with one of them
	// is not tried again. RetryableExitCodes, when there are any, are the only
	// ones after which it is.
	TerminalExitCodes  []int32 `json:"terminalExitCodes,omitempty"`
	RetryableExitCodes []int32 `json:"retryableExitCodes,omitempty"`
}

// RetriesAfter reports whether an attempt is tried again of which a container has
// ended with the code, which is not zero.
func (t *Tolerance) RetriesAfter(code int32) bool {
	switch {
	case t == nil:
		return true
	case slices.Contains(t.TerminalExitCodes, code):
		return false
	}
	return len(t.RetryableExitCodes) == 0 || slices.Contains(t.RetryableExitCodes, code)
}
