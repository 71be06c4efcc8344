package query

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// DecisionsSubject asks what was decided.
const DecisionsSubject = "muster.query.decisions"

// Bounds of one answer about decisions.
const (
	MaxDecisions      = 50
	MaxDecisionInputs = 20  // of one decision
	MaxDecisionSteps  = 100 // of one decision
)

// DecisionsRequest selects recorded decisions, the newest first.
type DecisionsRequest struct {
	// Until leaves out what was decided later; zero for none.
	Until time.Time `json:"until,omitzero"`
	// Before leaves out this decision and later ones: the Next of an earlier answer.
	Before *DecisionKey `json:"before,omitempty"`
	// Limit is at most MaxDecisions; zero means MaxDecisions.
	Limit int `json:"limit,omitempty"`
}

// DecisionKey names a decision: its number in the term of a leader.
type DecisionKey struct {
	Epoch  int64 `json:"epoch"`
	Number int64 `json:"number"`
}

// String writes the key as ParseDecisionKey reads it.
func (k DecisionKey) String() string { return fmt.Sprintf("%d-%d", k.Epoch, k.Number) }

// ParseDecisionKey reads EPOCH-NUMBER.
func ParseDecisionKey(text string) (k DecisionKey, err error) {
	epoch, number, found := strings.Cut(text, "-")
	if k.Epoch, err = strconv.ParseInt(epoch, 10, 64); err == nil {
		k.Number, err = strconv.ParseInt(number, 10, 64)
	}
	if err != nil || !found || k.Epoch < 0 || k.Number < 0 {
		return DecisionKey{}, fmt.Errorf("decision %.40q: want EPOCH-NUMBER, such as 7-1203", text)
	}
	return k, nil
}

// DecisionsAnswer is a page of decisions, the newest first.
type DecisionsAnswer struct {
	Decisions []Decision `json:"decisions"`
	// Next is the Before of the following page; absent after the last.
	Next *DecisionKey `json:"next,omitempty"`
}

// Decision is a commit of the ledger that was recorded: on what it was decided, and what came
// of it. `muster replay` decides it again and compares.
type Decision struct {
	DecisionKey
	// Version of the ledger after it.
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	// Inputs are the first ones, of InputsInAll; manifests are left out.
	Inputs      []DecisionInput `json:"inputs"`
	InputsInAll int             `json:"inputsInAll"`
	// Steps are the first workloads whose phase, places or reason changed, of StepsInAll.
	Steps      []DecisionStep `json:"steps"`
	StepsInAll int            `json:"stepsInAll"`
	// Bytes of the record. TooLarge: it was not read for that reason.
	Bytes    int  `json:"bytes"`
	TooLarge bool `json:"tooLarge,omitempty"`
}

// DecisionInput is something that came in.
type DecisionInput struct {
	Kind string `json:"kind"`
	// Message is the type of the event, and Subject of what it is; empty for other inputs.
	Message string    `json:"message,omitempty"`
	Subject string    `json:"subject,omitempty"`
	At      time.Time `json:"at"`
}

// DecisionStep is what became of a workload.
type DecisionStep struct {
	Workload workload.ID      `json:"workload"`
	Phase    workload.Phase   `json:"phase"`
	Attempt  int              `json:"attempt"`
	Cluster  string           `json:"cluster,omitempty"`
	Reason   *workload.Reason `json:"reason,omitempty"`
}

// Decisions asks what was decided.
func (c *Client) Decisions(ctx context.Context, request DecisionsRequest) (DecisionsAnswer, error) {
	return ask[DecisionsAnswer](ctx, c.transport, DecisionsSubject, request)
}
