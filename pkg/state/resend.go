package state

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// commandsInOrder visits the commands of workloads that hold capacity, ask for nodes or are being
// removed, and of what AdmissionChecks are asked.
func (s *State) commandsInOrder(visit func(subject string, e *entry)) {
	for _, e := range s.startedInOrder() {
		visit(event.DispatchSubject(e.Cluster, e.ID), e)
	}
	for _, e := range s.askingInOrder() {
		visit(event.DispatchSubject(e.Provisioning.Cluster, e.ID), e)
	}
	for _, e := range s.checkedInOrder() {
		for _, check := range e.checks().Checks {
			visit(event.CheckSubject(check.Name, e.ID), e)
		}
	}
	for _, e := range s.recovery.removingInOrder() {
		visit(event.DispatchSubject(e.Cluster, e.ID), e)
	}
}

// CommandSubjects lists the subjects of the commands of workloads that hold capacity, ask for
// nodes or are being removed, and of what AdmissionChecks are asked, as far as they are wanted.
func (s *State) CommandSubjects(wanted func(subject string) bool) []string {
	var subjects []string
	s.commandsInOrder(func(subject string, _ *entry) {
		if wanted(subject) {
			subjects = append(subjects, subject)
		}
	})
	return subjects
}

// CheckSubjects lists the subjects of what AdmissionChecks are asked and have not agreed to; with
// agreed also of what they have agreed to, as long as they may take that back.
func (s *State) CheckSubjects(agreed bool) []string {
	var subjects []string
	for _, e := range s.checkedInOrder() {
		for _, check := range e.checks().Checks {
			if agreed || check.Status != workload.CheckReady {
				subjects = append(subjects, event.CheckSubject(check.Name, e.ID))
			}
		}
	}
	return subjects
}

// Withheld lists the workloads of which ResendCommands would leave out a missing command now, because
// nothing may be written of them, and those that could not be read, whose commands are not known.
func (s *State) Withheld(missing func(subject string) bool) []workload.ID {
	var withheld []workload.ID
	s.commandsInOrder(func(subject string, e *entry) {
		if s.frozen(e) && missing(subject) {
			withheld = append(withheld, e.ID)
		}
	})
	for _, a := range s.unread {
		withheld = append(withheld, a.Workload)
	}
	slices.Sort(withheld)
	return slices.Compact(withheld)
}

// ResendCommands sends the commands of the started workloads whose subjects are missing
// once more: for a dispatcher whose stream was lost. It leaves out those that Withheld lists.
func (s *State) ResendCommands(now time.Time, missing func(subject string) bool) {
	for _, e := range s.startedInOrder() {
		switch {
		case s.frozen(e):
		case !missing(event.DispatchSubject(e.Cluster, e.ID)):
		case e.CancelRequested, (e.Phase == workload.Evicting || e.Phase == workload.Cancelling) && elapsed(now, e.EvictAt, 0):
			s.emitCommand(e, event.Absent, now)
		case e.Phase.Final() && elapsed(now, e.Times.Finished, time.Duration(s.rules(e).KeepFinished)):
			s.emitCommand(e, event.Ended, now)
		default:
			s.emitCommand(e, event.Present, now)
		}
	}
	for _, e := range s.askingInOrder() {
		if !s.frozen(e) && missing(event.DispatchSubject(e.Provisioning.Cluster, e.ID)) {
			s.emitRequest(e, event.Provision, now)
		}
	}
	for _, e := range s.checkedInOrder() {
		for i := range e.checks().Checks {
			if check := &e.checks().Checks[i]; !s.frozen(e) && missing(event.CheckSubject(check.Name, e.ID)) {
				s.emitCheck(e, check, lastAnswer(e, check), now)
			}
		}
	}
	for _, e := range s.recovery.removingInOrder() {
		if !s.frozen(e) && missing(event.DispatchSubject(e.Cluster, e.ID)) {
			s.recovery.emitRemoval(e, now)
		}
	}
}
