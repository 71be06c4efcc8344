package sim

import (
	"context"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/simhooks"
)

func (s *lockstep) refuses(part simhooks.Part, id workload.ID, code string) {
	if s != nil {
		s.must("refuse", s.tables.Refuse(part, id, code))
	}
}

func (s *lockstep) mended() {
	if s != nil {
		s.must("mend", s.tables.Mend())
		s.released()
	}
}

func (s *lockstep) released() {
	if s != nil {
		s.must("empty quarantine", s.tables.Owner(`DELETE FROM quarantine`))
	}
}

// probed compares what is found to blame.
func (s *lockstep) probed(c state.Changes, record simhooks.Record, passing string, played []simhooks.Refusal, failed error) {
	if s == nil {
		return
	}
	c.Version += schemaVersion
	record.Version += schemaVersion
	stored, err := s.eye.Probe(context.Background(), c, record, passing)
	if failed != nil && err != nil {
		return
	}
	s.must("probe", err)
	names := func(refused []simhooks.Refusal) (names []string) {
		for _, r := range refused {
			names = append(names, fmt.Sprintf("%s of %s", r.Part, s.l.w.submits.nameOf(r.Workload)))
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	s.same("what is refused", names(stored), names(played))
}

func (s *lockstep) kept(epoch int64, quarantined []state.Quarantined, played error) {
	if s != nil {
		s.agree("quarantine", played, s.eye.Quarantine(context.Background(), epoch, quarantined))
	}
}
