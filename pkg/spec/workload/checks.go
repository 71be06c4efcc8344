package workload

import (
	"slices"
	"time"
)

// CheckStatus is an answer to an AdmissionCheck, with Kueue's words.
type CheckStatus string

// The answers. A check that has not answered is pending, too.
const (
	CheckPending  CheckStatus = "Pending"  // it goes on checking
	CheckReady    CheckStatus = "Ready"    // the workload may start
	CheckRetry    CheckStatus = "Retry"    // not now: it is asked again after a while
	CheckRejected CheckStatus = "Rejected" // the workload never starts
)

// Checks are the AdmissionChecks that a workload is put to before it starts.
type Checks struct {
	// Number is that of the request. No two of a workload have the same.
	Number int `json:"number"`
	// Asked: the request stands, until the attempt ends or a check wants it repeated. All
	// below is of a standing request.
	Asked bool `json:"asked,omitempty"`
	// Quota: the quota of the flavors is held while a check is pending.
	Quota   bool            `json:"quota,omitempty"`
	Flavors []PodSetFlavors `json:"flavors,omitempty"`
	Checks  []Check         `json:"checks,omitempty"`
	// Retries counts the requests that were to be repeated since the last admission.
	Retries int `json:"retries,omitempty"`
	// RetryAfterSeconds is the back-off of a workload that is evicted to be asked again.
	RetryAfterSeconds int64 `json:"retryAfterSeconds,omitempty"`
}

// Check is one of them, with its last answer.
type Check struct {
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	// Since is when it was asked or, once it has answered, when it gave this status.
	Since    time.Time `json:"since"`
	Answered bool      `json:"answered,omitempty"`
	Message  string    `json:"message,omitempty"`
	// Updates are what a check that is ready adds to the pods.
	Updates []PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// PodSetUpdate is what a check adds to the pods of a pod set (Kueue's podSetUpdates).
type PodSetUpdate struct {
	PodSet       string            `json:"name"`
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
}

// Pending reports whether a check of a standing request has not agreed yet.
func (c *Checks) Pending() bool {
	return c != nil && c.Asked && slices.ContainsFunc(c.Checks, func(check Check) bool { return check.Status != CheckReady })
}

// Ready lists the checks that have agreed, by name.
func (c *Checks) Ready() (names []string) {
	if c == nil || !c.Asked {
		return nil
	}
	for _, check := range c.Checks {
		if check.Status == CheckReady {
			names = append(names, check.Name)
		}
	}
	return names
}

// Check returns the check of that name; nil when the workload is not put to it.
func (c *Checks) Check(name string) *Check {
	if c == nil || !c.Asked {
		return nil
	}
	for i := range c.Checks {
		if c.Checks[i].Name == name {
			return &c.Checks[i]
		}
	}
	return nil
}

// Updates lists what the checks add to the pods of a pod set.
func (c *Checks) Updates(podSet string) (updates []PodSetUpdate) {
	if c == nil || !c.Asked {
		return nil
	}
	for _, check := range c.Checks {
		for _, update := range check.Updates {
			if update.PodSet == podSet {
				updates = append(updates, update)
			}
		}
	}
	return updates
}
