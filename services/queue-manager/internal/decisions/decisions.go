// Package decisions shows recorded decisions to people: on what each was decided, and what came
// of it. It leaves manifests out, and repeats nothing: package replay does.
package decisions

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Last answers from what Postgres has recorded.
func Last(ctx context.Context, ledger *store.Store, r query.DecisionsRequest) (query.DecisionsAnswer, error) {
	if r.Limit <= 0 || r.Limit > query.MaxDecisions {
		r.Limit = query.MaxDecisions
	}
	recorded, err := ledger.LastDecisions(ctx, r)
	if err != nil {
		return query.DecisionsAnswer{}, err
	}
	answer := query.DecisionsAnswer{Decisions: []query.Decision{}}
	for i, d := range recorded {
		if i == r.Limit {
			answer.Next = &answer.Decisions[i-1].DecisionKey
			break
		}
		shown, err := show(d)
		if err != nil {
			return query.DecisionsAnswer{}, fmt.Errorf("decision %d of epoch %d: %w", d.Number, d.Epoch, err)
		}
		answer.Decisions = append(answer.Decisions, shown)
	}
	return answer, nil
}

func show(d store.Recorded) (query.Decision, error) {
	shown := query.Decision{
		DecisionKey: query.DecisionKey{Epoch: d.Epoch, Number: d.Number}, Version: d.Version, At: d.At, Bytes: d.Bytes, TooLarge: d.TooLarge,
		Inputs: []query.DecisionInput{}, Steps: []query.DecisionStep{},
	}
	if d.TooLarge {
		return shown, nil
	}
	inputs, err := decisionlog.Inputs(d.Inputs)
	if err != nil {
		return shown, err
	}
	shown.InputsInAll = len(inputs)
	for _, in := range inputs[:min(len(inputs), query.MaxDecisionInputs)] {
		shown.Inputs = append(shown.Inputs, input(in))
	}
	steps, err := stepsOf(d.Outcome)
	shown.StepsInAll = len(steps)
	for _, h := range steps[:min(len(steps), query.MaxDecisionSteps)] {
		shown.Steps = append(shown.Steps, query.DecisionStep{Workload: h.Workload, Phase: h.Phase, Attempt: h.Attempt, Cluster: h.Cluster, Reason: h.Reason})
	}
	return shown, err
}

// input names what came in. A message that cannot be read any more is shown without its type.
func input(in decisionlog.Input) query.DecisionInput {
	shown := query.DecisionInput{Kind: in.Kind, At: in.At, Subject: string(in.Workload)}
	if len(in.Message) == 0 {
		return shown
	}
	if envelope, err := event.Parse(in.Message); err == nil {
		shown.Message, shown.Subject = envelope.Type, envelope.Subject
	}
	return shown
}

// longestLine bounds a line of an outcome.
const longestLine = 16 << 20

// stepsOf reads the steps of lives in an outcome.
func stepsOf(outcome []byte) ([]state.HistoryRow, error) {
	var steps []state.HistoryRow
	lines := bufio.NewScanner(bytes.NewReader(outcome))
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		if !bytes.HasPrefix(lines.Bytes(), []byte(`{"step":`)) {
			continue
		}
		var line struct {
			Step state.HistoryRow `json:"step"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("read a step of the outcome: %w", err)
		}
		steps = append(steps, line.Step)
	}
	return steps, lines.Err()
}
