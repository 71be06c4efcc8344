package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// beginQuarantine begins the term with the quarantine of the ledger and of this process.
func (l *leader) beginQuarantine(ctx context.Context) error {
	quarantined, err := l.Store.Quarantined(ctx)
	if err != nil {
		return err
	}
	l.memory.Sync(quarantined, l.clock.now(), l.clock.now())
	for _, a := range l.memory.addUnread(l.state.Unread()) {
		l.Metrics.notStorable.WithLabelValues("workload").Inc()
		l.Logger.Error("cannot read a live workload; it stays as it is", zap.String("workload", string(a.Workload)), zap.String("reason", a.Why))
	}
	l.keepOut()
	l.storeQuarantine(ctx, l.memory.Unstored(l.state))
	l.Metrics.quarantined.Set(float64(l.memory.KeptOut(l.clock.now())))
	for _, a := range l.memory.Unannounced(l.state) {
		l.announceQuarantined(ctx, a)
	}
	return nil
}

// keepOut keeps out of decisions what is in quarantine now, from the beginning of the term on.
func (l *leader) keepOut() {
	l.keptOutAt = l.clock.now()
	l.memory.ApplyTo(l.step, l.keptOutAt)
}

// errReleased ends a term, so that the next one tries again what was released.
var errReleased = fmt.Errorf("something was released from quarantine: %w", errTermOver)

// errDue ends a term, so that the next one tries again what was kept out of decisions for a while.
var errDue = errors.New("something that was kept out of decisions for a while is tried again")

// releaseEvery is how often the leader looks whether something was released.
const releaseEvery = 2 * time.Second

// checkReleased ends the term when something was released from quarantine, or is to be tried
// again. A ledger that does not answer fails the next commit anyway.
func (l *leader) checkReleased(ctx context.Context) error {
	if l.memory.Due(l.keptOutAt, l.clock.now()) {
		l.Logger.Info("trying again what was kept out of decisions for a while")
		return errDue
	}
	if !l.memory.InQuarantine() || l.clock.now().Sub(l.checkedRelease) < releaseEvery {
		return nil
	}
	l.checkedRelease = l.clock.now()
	quarantined, err := l.Store.Quarantined(ctx)
	if err != nil {
		return nil
	}
	released := slices.DeleteFunc(l.memory.Sync(quarantined, l.keptOutAt, l.clock.now()), l.hasEnded)
	if len(released) > 0 {
		l.Logger.Info("released from quarantine", zap.Strings("released", released))
		return errReleased
	}
	return nil
}

// hasEnded reports whether what was in quarantine is a workload that is not live: the ledger
// forgets it after a while, and there is nothing of it to try again.
func (l *leader) hasEnded(key string) bool {
	id := workload.ID(key)
	unread := slices.ContainsFunc(l.state.Unread(), func(u state.Quarantined) bool { return u.Workload == id })
	return !strings.Contains(key, "/") && !l.state.Has(id) && !unread
}

// diagnoseCommit finds what the database refused of a commit, and puts it in quarantine,
// rejects it or dead-letters it. Nothing uses the state any more.
func (l *leader) diagnoseCommit(ctx context.Context, failed *commitError) {
	var found Diagnosis
	defer func() { redeliver(found.Others(failed.decision.Batch)) }()
	var err error
	found, err = l.writer.Diagnose(ctx, failed.decision, failed.cause, l.memory, l.clock.now())
	if err != nil {
		l.Logger.Error("cannot find the row for which the database refused a commit", zap.Error(err), zap.NamedError("refusal", failed.cause))
		return
	}
	failed.blamed = !found.Empty()
	l.memory.Remember(found)
	if found.Unrecorded {
		l.Metrics.notStorable.WithLabelValues("record").Inc()
		l.Logger.Error("cannot store the decision log; deciding without it, and these decisions cannot be replayed", zap.Error(failed.cause))
	}
	if found.NoPastUsage {
		l.Metrics.notStorable.WithLabelValues("past usage").Inc()
		l.Logger.Error("cannot store the past usage of queues; fair sharing loses it with the next leader", zap.Error(failed.cause))
	}
	if found.NoLearned {
		l.Metrics.notStorable.WithLabelValues("learned").Inc()
		l.Logger.Error("cannot store what was learned of the cost of evictions; the next leader begins without it", zap.Error(failed.cause))
	}
	for _, r := range found.Rejected {
		l.reject(ctx, r)
	}
	l.Metrics.notStorable.WithLabelValues("message").Add(float64(len(found.Dropped)))
	l.quarantine(ctx, found.Quarantined)
}

// quarantine keeps workloads, nodes and quota out of decisions from the next term on.
func (l *leader) quarantine(ctx context.Context, quarantined []state.Quarantined) {
	for _, a := range quarantined {
		what := "workload"
		switch {
		case a.Node.Name != "":
			what = "node"
		case a.Scope != "":
			what = "quota"
		}
		l.Metrics.notStorable.WithLabelValues(what).Inc()
		l.Logger.Error("quarantined what the database refuses to store", zap.String("what", what), zap.String("name", keyOf(a)),
			zap.Int("level", int(a.Level)), zap.Time("until", a.Until), zap.String("reason", a.Why))
	}
	l.storeQuarantine(ctx, quarantined)
}

// storeQuarantine writes a part of the quarantine to the ledger. What cannot be written is
// tried again when this process leads the next time.
func (l *leader) storeQuarantine(ctx context.Context, quarantined []state.Quarantined) {
	err := l.memory.Store(quarantined, func(quarantined []state.Quarantined) error { return l.Store.Quarantine(ctx, l.epoch, quarantined) })
	if err != nil {
		l.Logger.Error("cannot store the quarantine; a next leader will not have it", zap.Error(err))
	}
}

// announceQuarantined publishes the reason of a frozen workload past the outbox: nothing of
// it can be written, and so no event of it either.
func (l *leader) announceQuarantined(ctx context.Context, a state.Quarantined) {
	record, live := l.state.Record(a.Workload)
	if !live {
		return
	}
	id := fmt.Sprintf("queue-manager/aside/%s/%d/%d", a.Workload, l.epoch, a.Tries)
	kept, err := event.New(id, event.QueueManagerSource, time.Now(), &event.WorkloadChanged{Record: record.ForTenant()})
	if err == nil {
		err = l.Bus.Publish(ctx, event.EventsSubject(record.Queue, record.ID), kept)
	}
	if err != nil {
		l.Logger.Warn("cannot publish that a workload is quarantined", zap.String("workload", string(a.Workload)), zap.Error(err))
	}
}
