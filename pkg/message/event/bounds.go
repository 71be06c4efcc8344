package event

import (
	"muster.dev/muster/pkg/message/bounds"
)

// Bounds of the data of an event, before it is decoded. Honest events have far fewer values: each
// pod of a gang has about 13, and a manifest 20,000 at most.
const (
	mostDepth           = 100 // of a manifest within a bundle within an event
	mostFlatDepth       = 20  // of what a cluster reports
	mostSubmittedValues = 50_000
	mostListedValues    = 250_000
	mostGangValues      = 200_000
	mostValues          = 20_000
)

// boundsOf bounds the data of what the keys of clusters and of further intakes can publish. What
// queue-manager alone publishes has no bounds.
func boundsOf(p Payload) bounds.JSON {
	switch p.(type) {
	case *GangObserved, *NodeObserved, *GangStatus:
		return bounds.JSON{Depth: mostFlatDepth, Values: mostGangValues}
	case *CapacitySynced:
		return bounds.JSON{Depth: mostFlatDepth, Values: mostListedValues}
	case *NodeRemoved, *NamespaceObserved, *PermissionAsked, *CheckAnswer, *WorkloadCancel:
		return bounds.JSON{Depth: mostFlatDepth, Values: mostValues}
	case *WorkloadSubmitted:
		return bounds.JSON{Depth: mostDepth, Values: mostSubmittedValues}
	}
	return bounds.JSON{}
}

// Bounds of the texts of a submission.
const (
	mostWarnings = 32
	mostText     = 4 << 10 // bytes of a warning, or why a workload is cancelled
)

// submission checks what the intake of a further cluster publishes.
func (c *check) submission(s *WorkloadSubmitted) {
	c.text("priority class", s.PriorityClass)
	c.count("warnings", len(s.Warnings), mostWarnings)
	c.long("warning", s.Warnings...)
	if len(s.Manifest) > MaxSubmission {
		c.fail("manifest has %d bytes; want at most %d", len(s.Manifest), MaxSubmission)
	}
	if err := s.Workload.CheckSubmitted(); err != nil {
		c.fail("workload: %w", err)
	}
}

func (c *check) cancellation(e *WorkloadCancel) {
	c.text("workload", string(e.Workload), e.Submitter)
	c.long("why", e.Why)
}

// long checks text of people.
func (c *check) long(what string, texts ...string) {
	for _, text := range texts {
		if len(text) > mostText {
			c.fail("%s %.20q... has %d bytes; want at most %d", what, text, len(text), mostText)
		}
	}
}
