package state

import (
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Commanded lists the subjects, of workloads that hold capacity, that are as
// wanted.
func (s *State) Commanded(wanted func(subject string) bool) []string {
	var subjects []string
	for _, e := range s.startedInOrder() {
		if subject := event.DispatchSubject(e.Cluster, e.ID); wanted(subject) {
			subjects = append(subjects, subject)
		}
	}
	for _, e := range s.askingInOrder() {
		if subject := event.DispatchSubject(e.Provisioning.Cluster, e.ID); wanted(subject) {
			subjects = append(subjects, subject)
		}
	}
	for _, e := range s.recovery.removingInOrder() {
		if subject := event.DispatchSubject(e.Cluster, e.ID); wanted(subject) {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

// ResendCommands sends the commands of the started workloads whose subjects are missing
// once more: for a dispatcher whose stream was lost.
func (s *State) ResendCommands(now time.Time, missing func(subject string) bool) {
	for _, e := range s.startedInOrder() {
		switch {
		case s.frozen(e):
		case !missing(event.DispatchSubject(e.Cluster, e.ID)):
		case e.CancelRequested, (e.Phase == workload.Evicting || e.Phase == workload.Cancelling) && elapsed(now, e.EvictAt, 0):
			s.sendCommand(e, event.Absent, now)
		case e.Phase.Final() && elapsed(now, e.Times.Finished, time.Duration(s.rules(e).KeepFinished)):
			s.sendCommand(e, event.Ended, now)
		default:
			s.sendCommand(e, event.Present, now)
		}
	}
	for _, e := range s.askingInOrder() {
		if !s.frozen(e) && missing(event.DispatchSubject(e.Provisioning.Cluster, e.ID)) {
			s.sendRequest(e, event.Provision, now)
		}
	}
	for _, e := range s.recovery.removingInOrder() {
		if missing(event.DispatchSubject(e.Cluster, e.ID)) {
			s.recovery.sendRemoval(e, now)
		}
	}
}
