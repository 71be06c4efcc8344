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
// may have been restored to a state older than their stream, and the stream may have lost the command
// that ends a request for nodes. A workload or request without a record in two sweeps in a row, while
// its command is the same, is removed.
func (s *sweeper) confirmCommands(ctx context.Context, truth Truth) {
	for _, command := range s.nextAsked() {
		has, err := s.hasRecord(ctx, truth, command)
		if err != nil || ctx.Err() != nil {
			return
		}
		if s.workloads.get(command.Workload).noteConfirmed(command, has, s.now()) {
			s.metrics.orphans.Inc()
			what := "removing a workload whose admission queue-manager does not have"
			if command.State == event.Provision {
				what = "removing a request for nodes that queue-manager does not have"
			}
			s.logger.Warn(what, zap.String("workload", string(command.Workload)),
				zap.Int("attempt", command.Attempt), zap.Int64("epoch", command.Epoch), zap.String("kind", command.Kind),
				zap.String("namespace", command.Namespace), zap.String("name", command.Name))
			s.look(command.Workload)
		}
	}
}

// hasRecord asks queue-manager whether it has what a command starts: the places of the attempt, or
// the request for nodes.
func (s *sweeper) hasRecord(ctx context.Context, truth Truth, command *event.GangCommand) (bool, error) {
	if command.State == event.Provision && command.Provision != nil {
		return s.hasRequest(ctx, truth, command.Workload, command.Provision.Name)
	}
	return s.holdsPlaces(ctx, truth, command.Workload, command.Attempt)
}

// nextAsked returns the commands to start, and to ask for nodes, that are asked about next: the unconfirmed ones,
// and then the next in the order of workloads.
func (s *sweeper) nextAsked() (due []*event.GangCommand) {
	var ids []workload.ID
	commands := map[workload.ID]*event.GangCommand{}
	for _, t := range s.workloads.all() {
		switch command, unconfirmed := t.isUnconfirmed(); {
		case unconfirmed:
			due = append(due, command)
		case command != nil && (command.State == event.Present || command.State == event.Provision):
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
