// Package journal is the record of what was done to a book and what came of it,
// enough to do it again: the inputs in their order, with the time that each was
// given, and the outcome of each commit. A book is pure, so the same inputs on the
// same start give the same outcome, on any machine.
//
// It is bytes and values only. Keeping them is queue-manager's store's, and the
// events inside are package event's.
package journal

import (
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// Kinds of inputs.
const (
	Begin         = "begin"         // a term begins
	Event         = "event"         // a message
	Decide        = "decide"        // admit, evict, explain
	Tick          = "tick"          // let time act
	RewriteNodes  = "rewriteNodes"  // all nodes are written anew
	Repeat        = "repeat"        // commands are given again
	Undeliverable = "undeliverable" // a command that cannot be sent
	Govern        = "govern"        // other queues and another policy
	SetAside      = "setAside"      // the database refuses to store a workload or a node
	CheckRights   = "checkRights"   // who waits may have lost the right to
	Ahead         = "ahead"         // what the streams have and the ledger does not know
)

// Input is one thing that was done to a book.
type Input struct {
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
	// Term is what the term began with; of Begin.
	Term *Term `json:"term,omitempty"`
	// Message is a CloudEvent as it came; of Event. It follows the rest.
	Message []byte `json:"-"`
	// Known is what the ledger had of the workload of a submission that the book
	// does not have; of Event.
	Known *book.Known `json:"known,omitempty"`
	// Grace of nodes that are not ready; of Tick.
	Grace time.Duration `json:"grace,omitempty"`
	// Subjects whose commands are given again; of Repeat.
	Subjects []string `json:"subjects,omitempty"`
	// Workload whose command cannot be sent, and why; of Undeliverable.
	Workload workload.ID `json:"workload,omitempty"`
	Reason   string      `json:"reason,omitempty"`
	// Aside says what is kept out of decisions; of SetAside.
	Aside *book.Aside `json:"aside,omitempty"`
	// Settings that count from the version of the ledger on; of Govern.
	Settings *book.Settings `json:"settings,omitempty"`
	Version  int64          `json:"version,omitempty"`
	// Ahead is what the streams have; of Ahead.
	Ahead *book.Ahead `json:"ahead,omitempty"`
}

// Term is what a term began with, besides the live workloads and the nodes.
type Term struct {
	Epoch int64 `json:"epoch"`
	// Release of Muster that decided.
	Release string `json:"release"`
	// Search is the version of the bounds of searches, admission.SearchVersion.
	Search int         `json:"search,omitempty"`
	Stored book.Stored `json:"stored"`
	Limits book.Limits `json:"limits"`
	// AskFor is how long answers are waited for, see book.SetAskFor.
	AskFor time.Duration `json:"askFor,omitempty"`
}

// Of returns the term that begins on a book.
func Of(b *book.Book, epoch int64, limits book.Limits, release string) Term {
	return Term{Epoch: epoch, Release: release, Search: admission.SearchVersion, Stored: b.Settings(), Limits: limits}
}

// Book returns the book of the term, with the given workloads and nodes.
func (t Term) Book(workloads []book.StoredWorkload, nodes []book.StoredNode) *book.Book {
	stored := t.Stored
	stored.Workloads, stored.Nodes = workloads, nodes
	b := book.New(t.Epoch, stored)
	b.SetLimits(t.Limits)
	b.SetAskFor(t.AskFor)
	b.CatchUp()
	return b
}

// Apply does an input that is not Begin to a book. It is the way by which
// queue-manager changes its book, so what is applied again is the same.
func Apply(b *book.Book, in Input) error {
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
		Take(b, envelope, payload, in.Known, in.At)
	case Decide:
		b.Decide(in.At)
	case Tick:
		b.Tick(in.At, in.Grace)
	case RewriteNodes:
		b.RewriteNodes()
	case Repeat:
		again := map[string]bool{}
		for _, subject := range in.Subjects {
			again[subject] = true
		}
		b.RepeatCommands(in.At, func(subject string) bool { return again[subject] })
	case Undeliverable:
		b.Undeliverable(in.Workload, in.Reason, in.At)
	case Govern:
		if in.Settings == nil {
			return errors.New("apply a recorded input: it has no settings")
		}
		b.Govern(in.Settings.Queues, in.Settings.Policy, in.Version)
	case SetAside:
		if in.Aside == nil {
			return errors.New("apply a recorded input: nothing is named to be set aside")
		}
		b.SetAside(*in.Aside, in.At)
	case CheckRights:
		b.CheckRights(in.At)
	case Ahead:
		if in.Ahead == nil {
			return errors.New("apply a recorded input: it has nothing that the streams have")
		}
		b.Ahead(*in.Ahead, in.At)
	default:
		return fmt.Errorf("apply a recorded input: kind %q is unknown, or has no place here", in.Kind)
	}
	return nil
}

// Take has a book take an event in, that came in the envelope at the given time.
// It reports whether the event is one for a book, and of a cancellation or release whether
// the workload is live.
func Take(b *book.Book, envelope event.Envelope, payload event.Payload, known *book.Known, at time.Time) bool {
	switch p := payload.(type) {
	case *event.WorkloadSubmitted:
		b.Submit(p, known, at)
	case *event.WorkloadCancel:
		return b.Cancel(p, at)
	case *event.WorkloadRelease:
		return b.ForceRelease(p, at)
	case *event.NodeObserved:
		b.Node(p, at)
	case *event.NodeRemoved:
		b.NodeRemoved(p, at)
	case *event.CapacitySynced:
		b.Synced(p, at)
	case *event.GangObserved:
		b.Gang(p, envelope.Time, at)
	case *event.GangStatus:
		b.Status(p, envelope.Time, at)
	default:
		return false
	}
	return true
}
