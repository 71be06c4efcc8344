package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// lookAfter is after how many commits all that is stored is compared.
const lookAfter = 40

// look compares all that is stored.
func (s *lockstep) look() {
	if s == nil || s.l.w.check.breach != nil {
		return
	}
	s.Looks++
	ctx := context.Background()
	stored, err := s.eye.Load(ctx)
	s.must("load", err)
	played := s.l.load()
	stored.Version -= schemaVersion
	stored.Expected, stored.MaxEvent, played.MaxEvent = 0, 0, 0
	stored.Policy, played.Policy = s.l.policy, s.l.policy
	s.same("what a term begins with", stored, played)
	var ids []workload.ID
	for _, each := range s.l.w.submits.all {
		ids = append(ids, each.id)
	}
	known, err := s.eye.Known(ctx, ids)
	s.must("look workloads up", err)
	for _, id := range ids {
		record, there := s.l.record(id)
		if k, found := known[id]; found != there || there && (k.Digest != record.Digest || k.Phase != record.Phase || k.Submitter != record.Submitter) {
			s.differ("%s is %v %s, and played %v %s", s.l.w.submits.nameOf(id), found, k.Phase, there, record.Phase)
		}
	}
	unsent, err := s.eye.Unsent(ctx, []string{""}, 0, 1<<20)
	s.must("read the outbox", err)
	s.same("the outbox", outlines(unsent), outlines(s.l.outbox))
	s.lookBack(ctx)
}

// lookBack compares what was published, and what streams are known to have had.
func (s *lockstep) lookBack(ctx context.Context) {
	const age, many = 20 * 365 * 24 * time.Hour, 1 << 20
	stored, _, err := s.eye.HistorySince(ctx, 0, age, many)
	s.must("read history", err)
	again, _, err := s.l.HistorySince(ctx, 0, age, many)
	s.must("read the played history", err)
	line := func(all []simhooks.HistoryEvent) (lines []string) {
		for _, t := range all {
			if t.EventID != "" {
				lines = append(lines, fmt.Sprintf("%s %s %s %d %s %s", t.EventID, t.Record.ID, t.Record.Phase, t.Record.Attempt, t.Record.Cluster,
					t.At.UTC().Truncate(time.Microsecond)))
			}
		}
		return lines
	}
	s.same("history", line(stored), line(again))
	watermarks, err := s.eye.Watermarks(ctx)
	s.must("read the marks", err)
	for _, name := range slices.Sorted(maps.Keys(s.l.watermarks)) {
		if a, b := watermarks[name], s.l.watermarks[name]; a.Last != b.Last || !a.Created.Equal(b.Created.Truncate(time.Microsecond)) {
			s.differ("the mark of %s is %v, and played %v", name, a, b)
		}
	}
}

// outlines are messages as far as they are the same in both.
func outlines(messages []simhooks.Outgoing) (lines []string) {
	for _, m := range messages {
		lines = append(lines, fmt.Sprintf("%s %s %s %s %s", m.EventID, m.Subject, m.TTL, m.ManifestOf, m.Message))
	}
	return lines
}

func (s *lockstep) same(what string, stored, played any) {
	a, _ := json.Marshal(stored) // plain data can always be encoded
	b, _ := json.Marshal(played)
	if string(a) == string(b) {
		return
	}
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	part := func(text []byte) []byte { return text[max(0, at-200):min(len(text), at+200)] }
	s.differ("%s differs at %d:\n%s\nand played\n%s", what, at, part(a), part(b))
}
