package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/step"
)

// Unsent implements step.RelayLedger.
func (l *ledger) Unsent(_ context.Context, prefix string, after int64, limit int) (unsent []step.Outgoing, err error) {
	err = l.w.call(postgresServer, "Unsent", func() error {
		for _, m := range l.outbox {
			if m.Seq > after && strings.HasPrefix(m.Subject, prefix) && len(unsent) < limit {
				unsent = append(unsent, m)
			}
		}
		return nil
	})
	return unsent, err
}

// Complete implements step.RelayLedger.
func (l *ledger) Complete(_ context.Context, epoch int64, messages []step.Outgoing) error {
	return l.w.call(postgresServer, "Complete", func() error {
		if err := l.fence(epoch); err != nil {
			return err
		}
		for i, m := range messages {
			if r := l.live[m.ManifestOf]; r != nil && m.ManifestOf != "" {
				messages[i].Message, messages[i].ManifestOf = step.WithManifest(m.Message, r.manifest), ""
			}
		}
		return nil
	})
}

// Sent implements step.RelayLedger.
func (l *ledger) Sent(_ context.Context, epoch int64, seqs []int64, stream string, mark step.Mark) error {
	return l.w.call(postgresServer, "Sent", func() error {
		if err := l.fence(epoch); err != nil {
			return err
		}
		l.outbox = slices.DeleteFunc(l.outbox, func(m step.Outgoing) bool { return slices.Contains(seqs, m.Seq) })
		if !mark.Created.IsZero() {
			l.setMark(stream, mark)
		}
		return nil
	})
}

// setMark keeps the mark of a stream. One of a stream that was made at the begin of
// time says that it has lost something.
func (l *ledger) setMark(stream string, mark step.Mark) {
	if l.w.Bug != BugForgotten || mark.Created.Unix() > 0 {
		l.marks[stream] = mark
	}
}

// Marks implements step.RelayLedger.
func (l *ledger) Marks(context.Context) (marks map[string]step.Mark, err error) {
	marks = map[string]step.Mark{}
	return marks, l.w.call(postgresServer, "Marks", func() error {
		for name, mark := range l.marks {
			marks[name] = mark
		}
		return nil
	})
}

// SetMark implements step.RelayLedger.
func (l *ledger) SetMark(_ context.Context, epoch int64, stream string, mark step.Mark) error {
	return l.w.call(postgresServer, "SetMark", func() error {
		if err := l.fence(epoch); err != nil {
			return err
		}
		l.setMark(stream, mark)
		return nil
	})
}

// SetAside implements step.RelayLedger. No message here is too large.
func (l *ledger) SetAside(_ context.Context, _ int64, message step.Outgoing, reason string) error {
	l.w.breach("G3", "message %s set aside: %s", message.EventID, reason)
	return nil
}

// ToldSince implements step.RelayLedger.
func (l *ledger) ToldSince(_ context.Context, after int64, _ time.Duration, limit int) (all []step.Told, last int64, err error) {
	err = l.w.call(postgresServer, "ToldSince", func() error {
		for _, h := range l.history {
			if h.seq <= after || len(all) == limit {
				continue
			}
			last = h.seq
			record, known := l.record(h.Workload)
			if !known {
				continue
			}
			record.Phase, record.Attempt, record.Cluster, record.Reason = h.Phase, h.Attempt, h.Cluster, h.Reason
			all = append(all, step.Told{Seq: h.seq, EventID: h.EventID, At: h.At, Record: record})
		}
		return nil
	})
	return all, last, err
}

// record returns a workload, live or finished.
func (l *ledger) record(id workload.ID) (workload.Record, bool) {
	if r, ok := l.live[id]; ok {
		return r.Record, true
	}
	record, ok := l.archive[id]
	return record, ok
}
