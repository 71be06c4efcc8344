package decisionlog

import (
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Kinds of inputs. These strings are stored in the ledger: they never change, whatever the
// constant is called.
const (
	Begin          = "begin"         // a term begins
	Event          = "event"         // a message
	Decide         = "decide"        // admit, evict, explain
	Tick           = "tick"          // let time act
	BeginDecisions = "rewriteNodes"  // all nodes are written again, and lost places replaced
	ResendCommands = "repeat"        // commands are sent again
	Undeliverable  = "undeliverable" // a command that cannot be sent
	Configure      = "govern"        // other queues and another policy
	Quarantine     = "setAside"      // the database refuses to store a workload or a node
	CheckRights    = "checkRights"   // who waits may have lost the right to
	Ahead          = "ahead"         // what the streams have and the ledger does not know
	FailedOver     = "failedOver"    // clusters from which gangs have failed over in earlier terms
)

// Input is one thing that was done to a state.
type Input struct {
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	// Term is what the term began with; of Begin.
	Term *Term `json:"term,omitempty"`
	// Message is a CloudEvent as it came; of Event. It follows the rest.
	Message []byte `json:"-"`
	// Known is what the ledger had of the workload of a submission that the state
	// does not have; of Event.
	Known *state.Known `json:"known,omitempty"`
	// Asked is the place of a request (event.Request) in its stream; of Event.
	Asked workload.AskedAt `json:"asked,omitzero"`
	// Stored is when NATS stored a report that is read again, at the beginning of a term or after
	// a reconnection; of Event.
	Stored time.Time `json:"stored,omitzero"`
	// Grace of nodes that are not ready; of Tick.
	Grace time.Duration `json:"grace,omitempty"`
	// Subjects whose commands are sent again; of ResendCommands.
	Subjects []string `json:"subjects,omitempty"`
	// Workload whose command cannot be sent, and why; of Undeliverable.
	Workload workload.ID `json:"workload,omitempty"`
	Reason   string      `json:"reason,omitempty"`
	// Quarantined is what is kept out of decisions; of Quarantine.
	Quarantined *state.Quarantined `json:"aside,omitempty"`
	// Settings that count from the version of the ledger on; of Configure.
	Settings *state.Settings `json:"settings,omitempty"`
	Version  int64           `json:"version,omitempty"`
	// Ahead is what the streams have; of Ahead.
	Ahead *state.Ahead `json:"ahead,omitempty"`
	// Clusters from which gangs have failed over; of FailedOver.
	Clusters []state.FailedOver `json:"clusters,omitempty"`
}

// Term is what a term began with, besides the live workloads and the nodes.
type Term struct {
	Epoch int64 `json:"epoch"`
	// Release of Muster that decided.
	Release string `json:"release"`
	// Search is the version of the bounds of searches, admission.SearchVersion.
	Search int          `json:"search,omitempty"`
	Stored state.Stored `json:"stored"`
	Limits state.Limits `json:"limits"`
	// AskFor is the argument of state.SetAnswerTimeout.
	AskFor time.Duration `json:"askFor,omitempty"`
	// SilentAfter is the argument of state.SetSilentAfter.
	SilentAfter time.Duration `json:"silentAfter,omitempty"`
}

// TermOf returns the term that begins on a state.
func TermOf(s *state.State, epoch int64, limits state.Limits, release string) Term {
	return Term{Epoch: epoch, Release: release, Search: admission.SearchVersion, Stored: s.Settings(), Limits: limits, SilentAfter: s.SilentAfter()}
}

// State returns the state of the term, with the given workloads and nodes.
func (t Term) State(workloads []state.StoredWorkload, nodes []state.StoredNode) *state.State {
	stored := t.Stored
	stored.Workloads, stored.Nodes = workloads, nodes
	s := state.New(t.Epoch, stored)
	s.SetLimits(t.Limits)
	s.SetAnswerTimeout(t.AskFor)
	s.SetSilentAfter(t.SilentAfter)
	s.CatchUp()
	return s
}

// Apply does an input that is not Begin to a state. It is the way by which
// queue-manager changes its state, so what is applied again is the same.
func Apply(s *state.State, in Input) error {
	switch in.Kind {
	case Event:
		envelope, err := event.Parse(in.Message)
		if err != nil {
			return fmt.Errorf("apply a recorded event: %w", err)
		}
		payload, err := event.Decode(envelope)
		if err != nil {
			return fmt.Errorf("apply a recorded event: %w", err)
		}
		ApplyMessage(s, envelope, payload, in)
	case Decide:
		s.Decide(in.At)
	case Tick:
		s.Tick(in.At, in.Grace)
	case BeginDecisions:
		s.BeginDecisions(in.At)
	case ResendCommands:
		again := map[string]bool{}
		for _, subject := range in.Subjects {
			again[subject] = true
		}
		s.ResendCommands(in.At, func(subject string) bool { return again[subject] })
	case Undeliverable:
		s.Undeliverable(in.Workload, in.Reason, in.At)
	case Configure:
		if in.Settings == nil {
			return errors.New("apply a recorded input: it has no settings")
		}
		s.ApplyConfiguration(in.Settings.Queues, in.Settings.Policy, in.Version)
	case Quarantine:
		if in.Quarantined == nil {
			return errors.New("apply a recorded input: the quarantine names no workload or node")
		}
		s.Quarantine(*in.Quarantined, in.At)
	case CheckRights:
		s.CheckRights(in.At)
	case Ahead:
		if in.Ahead == nil {
			return errors.New("apply a recorded input: it has no contents of the streams")
		}
		s.Ahead(*in.Ahead, in.At)
	case FailedOver:
		s.RememberFailedOver(in.Clusters)
	default:
		return fmt.Errorf("apply a recorded input: kind %q is unknown, or has no place here", in.Kind)
	}
	return nil
}

// ApplyMessage has a state take in the event of an input, decoded. It reports whether the
// event is one for a state, and of a request (event.Request) whether its workload is live.
func ApplyMessage(s *state.State, envelope event.Envelope, payload event.Payload, in Input) bool {
	if request, is := payload.(event.Request); is && s.Overtaken(request, in.Asked) {
		return true
	}
	s.HeardBefore(payload, in.Stored, in.At)
	at := in.At
	switch p := payload.(type) {
	case *event.WorkloadSubmitted:
		s.Submit(p, in.Known, at)
	case *event.WorkloadCancel:
		return s.Cancel(p, at)
	case *event.WorkloadRelease:
		return s.ForceRelease(p, at)
	case *event.WorkloadMove:
		return s.MoveToQueue(p, at)
	case *event.WorkloadHold:
		return s.Hold(p, at)
	case *event.WorkloadRequeue:
		return s.Requeue(p, at)
	case *event.WorkloadPriority:
		return s.SetPriority(p, at)
	case *event.WorkloadCheckpoint:
		return s.Checkpoint(p, at)
	case *event.CheckAnswer:
		return s.CheckAnswered(p, at)
	case *event.NodeObserved:
		s.Node(p, at)
	case *event.NodeRemoved:
		s.NodeRemoved(p, at)
	case *event.NamespaceObserved:
		s.Namespace(p, at)
	case *event.CapacitySynced:
		s.Synced(p, at)
	case *event.GangObserved:
		s.Gang(p, envelope.Time, at)
	case *event.GangStatus:
		s.Status(p, envelope.Time, at)
	case *event.PermissionAsked:
		s.PermissionAsked(p, at)
	default:
		return false
	}
	return true
}
