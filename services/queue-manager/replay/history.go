package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// history is what came in from outside in the kept record, and what became of it there.
type history struct {
	begin     estimate.Snapshot
	events    []estimate.Event
	end       time.Time
	decisions int
	release   string
	// recorded are the outcomes in the record.
	recorded *estimate.Played
	runs     *recordedRuns
	// admitted are those that hold places, since when.
	admitted map[workload.ID]time.Time
	known    map[workload.ID]*workload.Workload
	// cancelled are those that a request ended; others end by themselves, or with their object.
	cancelled map[workload.ID]bool
}

// recordedRuns are the run times in the record. Those of workloads that did not end there are
// predicted from others.
type recordedRuns struct {
	ran     map[workload.ID]time.Duration
	learned estimate.History
}

// Predict implements estimate.RunTimes.
func (r *recordedRuns) Predict(w *workload.Workload, ran time.Duration) (time.Duration, bool) {
	if total, known := r.ran[w.ID]; known {
		return max(total, ran), true
	}
	return r.learned.Predict(w, ran)
}

// mostRecorded bounds the inputs of a history that are played.
const mostRecorded = 20_000_000

// readHistory reads the kept record from the last checkpoint before a time on. It decides
// nothing again, so it takes the record of any release whose messages this one can read.
func readHistory(ctx context.Context, s *store.Store, since time.Time, progress func(Report)) (*history, error) {
	checkpoints, err := s.Checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	if len(checkpoints) == 0 {
		return nil, ErrNoCheckpoint
	}
	first := checkpoints[0]
	for _, checkpoint := range checkpoints {
		if !checkpoint.At.After(since) {
			first = checkpoint
		}
	}
	ledger, err := s.ReadCheckpoint(ctx, first)
	if err != nil {
		return nil, err
	}
	h := &history{
		recorded: estimate.NewPlayed(first.At), runs: &recordedRuns{ran: map[workload.ID]time.Duration{}},
		admitted: map[workload.ID]time.Time{}, known: map[workload.ID]*workload.Workload{},
		cancelled: map[workload.ID]bool{},
	}
	h.start(first.At, ledger)
	err = s.Decisions(ctx, first.Epoch, func(d store.Decision) error {
		if err := h.add(d); err != nil {
			return fmt.Errorf("decision %d of epoch %d: %w", d.Number, d.Epoch, err)
		}
		if h.decisions%1000 == 0 {
			progress(Report{Decisions: h.decisions, To: d.Version})
		}
		return nil
	})
	if err == nil && h.decisions > 0 && h.begin.Queues == nil {
		err = errNoTerm
	}
	h.recorded.Close(h.end)
	return h, err
}

// start takes in the ledger at the beginning.
func (h *history) start(at time.Time, ledger *decisionlog.Replica) {
	h.begin.Now, h.end = at, at
	for _, w := range ledger.Stored() {
		of := w.Workload
		h.known[w.ID] = &of
		h.recorded.Live(&w.Record)
		if w.Holding {
			h.begin.Running = append(h.begin.Running, w.Record)
			h.admitted[w.ID] = w.Times.Admitted
			continue
		}
		w.Reason = nil // it is looked at again
		h.begin.Waiting = append(h.begin.Waiting, w.Record)
	}
	h.begin.Nodes = nodesOf(ledger)
}

func nodesOf(ledger *decisionlog.Replica) []capacity.Node {
	var nodes []capacity.Node
	for _, n := range ledger.Nodes() {
		if n.Present {
			nodes = append(nodes, n.Node)
		}
	}
	return nodes
}

// add reads a decision: what came in, and the steps of lives in its outcome.
func (h *history) add(d store.Decision) error {
	inputs, err := decisionlog.Inputs(d.Inputs)
	if err != nil {
		return fmt.Errorf("read its inputs: %w", err)
	}
	for _, in := range inputs {
		if err := h.input(in); err != nil {
			return err
		}
	}
	h.decisions++
	if d.At.After(h.end) {
		h.end = d.At
	}
	return h.steps(d.Outcome)
}

var errTooMuch = fmt.Errorf("the record has more than %d inputs: begin with a later --since", mostRecorded)

// input takes in what came from outside, and leaves the answers of clusters out.
func (h *history) input(in decisionlog.Input) error {
	if len(h.events) == mostRecorded {
		return errTooMuch
	}
	if in.At.After(h.end) {
		h.end = in.At
	}
	switch {
	case in.Kind == decisionlog.Begin && in.Term != nil:
		h.release = in.Term.Release
		settings := state.Settings{Queues: in.Term.Stored.Queues, Policy: in.Term.Stored.Policy}
		if h.begin.Queues == nil {
			h.begin.Queues, h.begin.Policy = settings.Queues, settings.Policy
			h.begin.PastUsage, h.begin.Learned = in.Term.Stored.PastUsage, in.Term.Stored.Learned
		} else {
			h.events = append(h.events, estimate.Event{At: in.At, Settings: &settings})
		}
	case in.Kind == decisionlog.Configure && in.Settings != nil:
		h.events = append(h.events, estimate.Event{At: in.At, Settings: in.Settings})
	case in.Kind == decisionlog.Event:
		return h.message(in)
	}
	return nil
}

func (h *history) message(in decisionlog.Input) error {
	envelope, err := event.Parse(in.Message)
	if err != nil {
		return fmt.Errorf("read a recorded message: %w", err)
	}
	payload, err := event.Decode(envelope)
	if err != nil {
		return fmt.Errorf("read a recorded message: %w", err)
	}
	switch m := payload.(type) {
	case *event.WorkloadSubmitted:
		m.Manifest = nil // large, and not decided on
		if h.known[m.Workload.ID] != nil {
			return nil // it came again
		}
		h.known[m.Workload.ID] = &m.Workload
	case *event.WorkloadCancel:
		h.cancelled[m.Workload] = true
	case *event.NodeObserved, *event.NodeRemoved, *event.WorkloadMove, *event.WorkloadHold, *event.WorkloadRequeue, *event.WorkloadPriority, *event.WorkloadCheckpoint:
	default:
		return nil
	}
	h.events = append(h.events, estimate.Event{At: in.At, Payload: payload})
	return nil
}

// steps takes in what became of workloads.
func (h *history) steps(outcome []byte) error {
	lines := bufio.NewReader(bytes.NewReader(outcome))
	var freed []workload.ID // after the steps of the same decision
	for {
		text, err := lines.ReadBytes('\n')
		if len(text) == 0 && err != nil {
			for _, id := range freed {
				h.freed(id)
			}
			return nil
		}
		if !bytes.HasPrefix(text, []byte(`{"step":`)) && !bytes.HasPrefix(text, []byte(`{"freed":`)) {
			continue
		}
		var line struct {
			Step  *state.HistoryRow `json:"step"`
			Freed []workload.ID     `json:"freed"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return fmt.Errorf("read its outcome: %w", err)
		}
		freed = append(freed, line.Freed...)
		if line.Step != nil {
			h.step(line.Step)
		}
	}
}

func (h *history) freed(id workload.ID) {
	h.recorded.Freed(id, h.end)
	delete(h.admitted, id)
}

func (h *history) step(s *state.HistoryRow) {
	w := h.known[s.Workload]
	if w == nil {
		return
	}
	r := workload.Record{Workload: *w, Phase: s.Phase, Attempt: s.Attempt, Cluster: s.Cluster}
	r.Times.Submitted = s.At
	h.recorded.Step(s.At, &r)
	since, holds := h.admitted[s.Workload]
	switch {
	case s.Phase == workload.Admitted && !holds:
		h.admitted[s.Workload] = s.At
	case s.Phase.Final() && holds && !h.cancelled[s.Workload]:
		h.runs.ran[s.Workload] = s.At.Sub(since)
		h.runs.learned.Learn(w, s.At.Sub(since))
	}
}

var errNoTerm = errors.New("the decision log has no begin record; earlier decisions are missing")
