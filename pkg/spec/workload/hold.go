package workload

import (
	"fmt"
	"time"
)

// Hold is since when a workload is not admitted, and who requested that.
type Hold struct {
	Since time.Time `json:"since"`
	By    string    `json:"by"`
	Why   string    `json:"why,omitempty"`
	// Own: a submitter asked for it over HTTP, and may end it. Operators end any hold.
	Own bool `json:"own,omitempty"`
}

// Message reports that the workload is held; empty for no hold.
func (h *Hold) Message() string {
	if h == nil {
		return ""
	}
	who := "an operator"
	if h.Own {
		who = "a submitter"
	}
	text := fmt.Sprintf("held by %s: %s, since %s", who, h.By, h.Since.UTC().Format(time.RFC3339))
	if h.Why != "" {
		text += ": " + h.Why
	}
	return text
}
