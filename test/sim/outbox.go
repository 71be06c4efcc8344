package sim

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// relayLedger is the ledger as the relay of a term has it.
type relayLedger struct{ *ledger }

// KnownMessages implements relay.Store. A relay asks for what arrived after its term had
// compared the streams.
func (l relayLedger) KnownMessages(ctx context.Context, messages []simhooks.MessageRef) (map[string]bool, error) {
	known, err := l.ledger.KnownMessages(ctx, messages)
	for _, m := range messages {
		if err == nil && !known[m.EventID] && l.lapse.came { // or it is of another leader, and the term is over
			l.w.check.made[madeLate]++
			known[m.EventID] = l.w.Bug == BugLateUncompared || l.w.Bug == BugUncompared
		}
	}
	return known, err
}

// Unsent implements relay.Store.
func (l *ledger) Unsent(_ context.Context, prefixes []string, after int64, limit int) (unsent []simhooks.Outgoing, err error) {
	var last int64
	err = l.w.call(postgresServer, "Unsent", func() error {
		for _, m := range l.outbox {
			if m.Seq > after && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(m.Subject, p) }) && len(unsent) < limit {
				unsent = append(unsent, m)
			}
		}
		last = l.version
		return nil
	})
	if len(unsent) > 0 && err == nil {
		l.reach(last)
	}
	return unsent, err
}

// CheckEpochAndAddManifests implements relay.Store.
func (l *ledger) CheckEpochAndAddManifests(_ context.Context, epoch int64, messages []simhooks.Outgoing) error {
	reached := l.w.cur.m.reached
	return l.w.call(postgresServer, "CheckEpochAndAddManifests", func() error {
		before, err := slices.Clone(messages), cmp.Or(l.fence(epoch), l.behind(reached))
		for i, m := range messages {
			if r := l.live[m.ManifestOf]; err == nil && r != nil && m.ManifestOf != "" {
				messages[i].Message, messages[i].ManifestOf = event.WithManifest(m.Message, r.manifest), ""
			}
		}
		l.real.completed(epoch, before, messages, err)
		return err
	})
}

// Sent implements relay.Store.
func (l *ledger) Sent(_ context.Context, epoch int64, seqs []int64, stream string, watermark simhooks.Watermark) error {
	reached := l.w.cur.m.reached
	return l.w.call(postgresServer, "Sent", func() error {
		err := cmp.Or(l.fence(epoch), l.behind(reached))
		l.real.sent(epoch, seqs, stream, watermark, err)
		if err != nil {
			return err
		}
		l.outbox = slices.DeleteFunc(l.outbox, func(m simhooks.Outgoing) bool { return slices.Contains(seqs, m.Seq) })
		if !watermark.Created.IsZero() {
			l.setWatermark(stream, watermark)
		}
		return nil
	})
}

// setWatermark keeps the watermark of a stream. One of a stream that was made at the beginning of
// time says that it has lost something.
func (l *ledger) setWatermark(stream string, watermark simhooks.Watermark) {
	if l.w.Bug != BugForgotten || watermark.Created.Unix() > 0 {
		l.watermarks[stream] = watermark
	}
}

// Watermarks implements relay.Store.
func (l *ledger) Watermarks(context.Context) (watermarks map[string]simhooks.Watermark, err error) {
	watermarks = map[string]simhooks.Watermark{}
	return watermarks, l.w.call(postgresServer, "Watermarks", func() error {
		for name, watermark := range l.watermarks {
			watermarks[name] = watermark
		}
		return nil
	})
}

// SetWatermark implements relay.Store.
func (l *ledger) SetWatermark(_ context.Context, epoch int64, stream string, watermark simhooks.Watermark) error {
	reached := l.w.cur.m.reached
	return l.w.call(postgresServer, "SetWatermark", func() error {
		err := cmp.Or(l.fence(epoch), l.behind(reached))
		l.real.watermarkSet(epoch, stream, watermark, err)
		if err == nil {
			l.setWatermark(stream, watermark)
		}
		return err
	})
}

// MoveToUndelivered implements relay.Store. No message here is too large.
func (l *ledger) MoveToUndelivered(_ context.Context, _ int64, message simhooks.Outgoing, reason string) error {
	l.w.breach("G3", "message %s set aside: %s", message.EventID, reason)
	return nil
}

// HistorySince implements relay.Store.
func (l *ledger) HistorySince(_ context.Context, after int64, _ time.Duration, limit int) (all []simhooks.HistoryEvent, last int64, err error) {
	err = l.w.call(postgresServer, "HistorySince", func() error {
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
			all = append(all, simhooks.HistoryEvent{Seq: h.seq, EventID: h.EventID, At: h.At, Record: record})
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
