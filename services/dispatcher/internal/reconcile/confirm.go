package reconcile

import (
	"cmp"
	"context"
	"slices"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// askMost bounds how many commands of a sweep are asked about.
const askMost = 100

// confirmCommands asks queue-manager whether it has a record of the commands: the database
// may have been restored to a state older than their stream. A workload without a record in
// two sweeps in a row, while its command is the same, is removed.
func (s *sweeper) confirmCommands(ctx context.Context, truth Truth) {
	for _, command := range s.nextAsked() {
		holds, err := s.holdsPlaces(ctx, truth, command.Workload, command.Attempt)
		if err != nil || ctx.Err() != nil {
			return
		}
		if s.workloads.get(command.Workload).noteConfirmed(command, holds) {
			s.metrics.orphans.Inc()
			s.logger.Warn("removing a workload whose admission queue-manager does not have", zap.String("workload", string(command.Workload)),
				zap.Int("attempt", command.Attempt), zap.Int64("epoch", command.Epoch), zap.String("kind", command.Kind),
				zap.String("namespace", command.Namespace), zap.String("name", command.Name))
			s.look(command.Workload)
		}
	}
}

// nextAsked returns the commands to start that are asked about next: the unconfirmed ones,
// and then the next in the order of workloads.
func (s *sweeper) nextAsked() (due []*event.GangCommand) {
	var ids []workload.ID
	commands := map[workload.ID]*event.GangCommand{}
	for _, t := range s.workloads.all() {
		switch command, unconfirmed := t.isUnconfirmed(); {
		case unconfirmed:
			due = append(due, command)
		case command != nil && command.State == event.Present:
			ids, commands[t.id] = append(ids, t.id), command
		}
	}
	slices.SortFunc(due, func(a, b *event.GangCommand) int { return cmp.Compare(a.Workload, b.Workload) })
	slices.Sort(ids)
	from, _ := slices.BinarySearch(ids, s.askedTo+"\x00")
	ids = slices.Concat(ids[from:], ids[:from])
	for _, id := range ids[:min(len(ids), askMost)] {
		due, s.askedTo = append(due, commands[id]), id
	}
	return due
}
