package event

import (
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// BudgetUsedUp reports that a budget of a queue is used up. It is on EventsSubject(queue, ""), for it
// is of no workload.
type BudgetUsedUp struct {
	Budget string `json:"budget"`
	Queue  string `json:"queue"`
	// Namespace of the queue; empty for all of its namespaces.
	Namespace string        `json:"queueNamespace,omitempty"`
	Resource  resource.Name `json:"resource"`
	// Period is Day, Week or Month.
	Period string `json:"period"`
	// Action is Warn, or Hold when nothing of the queue is admitted until the period ends.
	Action string `json:"action"`
	// Hours is what the budget allows, and Used what was used in the period.
	Hours int64   `json:"hours"`
	Used  float64 `json:"used"`
	// Until is the end of the period.
	Until time.Time `json:"until"`
	// Message is a sentence about it.
	Message string `json:"message"`
}

// EventType implements Payload.
func (*BudgetUsedUp) EventType() string { return "dev.muster.queue.budget-used-up.v1" }

// CloudEventSubject implements Payload.
func (e *BudgetUsedUp) CloudEventSubject() string { return e.Queue }
