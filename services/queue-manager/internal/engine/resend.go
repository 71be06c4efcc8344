package engine

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state/decisionlog"
)

// resendLimit bounds the commands that one decision sends again. A stream that was lost lacks
// those of all workloads that run, and submissions are decided between its parts.
const resendLimit = 500

// resends are the subjects whose commands are still to be sent again.
type resends struct {
	subjects []string
	// committed is to be called once the commands are committed, because the stream may have old
	// ones; nil when it only lacks some.
	committed func()
	// withheld are the workloads of which commands were left out meanwhile.
	withheld map[workload.ID]bool
}

// replace takes what a later comparison has found. What a stream lacks contains what was not sent
// again since the earlier one. What it has and may be old does not: that is kept.
func (r *resends) replace(subjects []string, committed func()) {
	if committed == nil && r.committed != nil {
		rest := map[string]bool{}
		for _, subject := range r.subjects {
			rest[subject] = true
		}
		more := slices.DeleteFunc(slices.Clone(subjects), func(subject string) bool { return rest[subject] })
		r.subjects = slices.Concat(r.subjects, more)
		return
	}
	r.subjects, r.committed, r.withheld = subjects, committed, nil
}

// withhold notes the workloads of which a part leaves out commands.
func (r *resends) withhold(some []workload.ID) {
	for _, id := range some {
		if r.withheld == nil {
			r.withheld = map[workload.ID]bool{}
		}
		r.withheld[id] = true
	}
}

// left is ready while there are any.
func (r *resends) left() <-chan struct{} {
	if len(r.subjects) == 0 {
		return nil
	}
	return always
}

// next removes and returns the subjects for one decision.
func (r *resends) next() []string {
	n := min(resendLimit, len(r.subjects))
	part := r.subjects[:n:n]
	r.subjects = r.subjects[n:]
	return part
}

// over returns what is to be called once what was decided so far is committed; nil for nothing.
func (r *resends) over() (committed func()) {
	if len(r.subjects) == 0 {
		committed, r.committed = r.committed, nil
	}
	return committed
}

// resendBacklog is how many messages may be on their way to NATS when a part of the commands is sent
// again. What is decided meanwhile is published behind them, and a successor begins with them.
const resendBacklog = 2 * resendLimit

// resendsDue is ready when a part may be sent again, or when it may be worth while to look: while
// much is on its way to NATS, something of it has arrived.
func (l *leader) resendsDue() <-chan struct{} {
	due := l.resends.left()
	if due != nil && l.relay.Backlog() >= resendBacklog {
		return l.relay.Moved()
	}
	return due
}

// sendAgainIfDue sends a part again unless too much is on its way still.
func (l *leader) sendAgainIfDue() {
	if l.relay.Backlog() < resendBacklog {
		l.sendAgain()
	}
}

// sendAgain has the next decision send a part of the commands again.
func (l *leader) sendAgain() {
	part := l.resends.next()
	again := map[string]bool{}
	for _, subject := range part {
		again[subject] = true
	}
	l.resends.withhold(l.state.Withheld(func(subject string) bool { return again[subject] }))
	l.do(decisionlog.Input{Kind: decisionlog.ResendCommands, Subjects: part})
}

// endResends waits until commands that were distrusted are committed, once all are decided. While
// some are withheld, the note of it stays: a later term, which may decide about those workloads,
// sends all commands once more.
func (l *leader) endResends(ctx context.Context) error {
	committed := l.resends.over()
	if committed == nil {
		return nil
	}
	if err := l.commits.flush(ctx, l.epoch); err != nil {
		return err
	}
	// Commands of workloads that could not be read are in no part.
	l.resends.withhold(l.state.Withheld(func(string) bool { return false }))
	if withheld := len(l.resends.withheld); withheld > 0 {
		l.Logger.Warn("commands of workloads in quarantine are not sent again; the next term sends all commands once more", zap.Int("workloads", withheld))
		return nil
	}
	committed()
	return nil
}
