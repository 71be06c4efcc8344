package query

import (
	"context"
	"fmt"
	"time"
)

// ActivitySubject asks what happened over time.
const ActivitySubject = "muster.query.activity"

// Bounds of one question about the activity.
const (
	MaxActivitySteps = 400
	MinActivityStep  = 10 * time.Second
	MaxActivityRange = 7 * 24 * time.Hour
)

// ActivityRequest asks what happened from a time until now, in equal steps.
type ActivityRequest struct {
	Since time.Time `json:"since"`
	// StepSeconds is the length of a step.
	StepSeconds int `json:"stepSeconds"`
	// Queue is the one that is selected; empty for all.
	Queue string `json:"queue,omitempty"`
	// Within leaves out the workloads of all other places; empty is everywhere.
	Within []Place `json:"within,omitempty"`
}

// Check refuses a request that cannot be answered or costs too much.
func (r ActivityRequest) Check(now time.Time) error {
	step, length := time.Duration(r.StepSeconds)*time.Second, now.Sub(r.Since)
	switch {
	case r.Since.IsZero() || length <= 0:
		return fmt.Errorf("since %s: want a time before now", r.Since.Format(time.RFC3339))
	case length > MaxActivityRange:
		return fmt.Errorf("since %s: want at most %d days ago", r.Since.Format(time.RFC3339), MaxActivityRange/(24*time.Hour))
	case r.StepSeconds > int(MaxActivityRange/time.Second) || step < MinActivityStep:
		return fmt.Errorf("stepSeconds %d: want %d to %d", r.StepSeconds, MinActivityStep/time.Second, MaxActivityRange/time.Second)
	case length/step >= MaxActivitySteps:
		return fmt.Errorf("stepSeconds %d since %s: want at most %d steps", r.StepSeconds, r.Since.Format(time.RFC3339), MaxActivitySteps)
	}
	return nil
}

// ActivityAnswer is what happened in each step, the oldest first.
type ActivityAnswer struct {
	Since       time.Time      `json:"since"`
	StepSeconds int            `json:"stepSeconds"`
	Steps       []ActivityStep `json:"steps"`
}

// ActivityStep is what happened in a step; the last one has not ended yet.
type ActivityStep struct {
	At time.Time `json:"at"` // of its beginning
	// Submitted, Admitted, Evicted and Ended count workloads to which that happened.
	Submitted int `json:"submitted"`
	Admitted  int `json:"admitted"`
	Evicted   int `json:"evicted"`
	Ended     int `json:"ended"`
	// Waiting is how many waited at its end; those that were moved count in the queue in which
	// they are now.
	Waiting int `json:"waiting"`
	// WaitP50 and WaitP90 are of those that were admitted the first time, in seconds since
	// their submission; zero where there was none.
	WaitP50 float64 `json:"waitP50,omitempty"`
	WaitP90 float64 `json:"waitP90,omitempty"`
}

// Activity asks what happened over time.
func (c *Client) Activity(ctx context.Context, request ActivityRequest) (ActivityAnswer, error) {
	return ask[ActivityAnswer](ctx, c.transport, ActivitySubject, request)
}
