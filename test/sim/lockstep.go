package sim

import (
	"context"
	"errors"
	"fmt"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// Tables are real ones, in Postgres, which are empty but for their schema. Package
// twin has them.
type Tables interface {
	// Store opens the tables for a process of its own.
	Store() (*simhooks.Store, error)
	// Owner does something as the role that owns the tables.
	Owner(statement string, args ...any) error
	refusals
}

// refusals are of tables that refuse what is written.
type refusals interface {
	// Refuse has the tables refuse a part of a workload, Mend no more.
	Refuse(part simhooks.Part, id workload.ID, code string) error
	Mend() error
}

// Compared is what a run with real tables has compared with them.
type Compared struct {
	// Commits that were tried on both, of which Refused were refused by both.
	Commits, Refused int
	// Looks at all that is stored, live and finished, by both.
	Looks int
}

// lockstep writes to real tables, through the code of queue-manager's store, what is
// written to the played ledger: each refusal by one alone, and each difference, is a
// breach. A ledger without tables has a nil one.
type lockstep struct {
	l      *ledger
	tables Tables
	eye    *simhooks.Store // that looks
	stores map[string]*simhooks.Store
	seqs   map[int64]int64 // of the real outbox, by the played one
	Compared
}

// schemaVersion is the version of a ledger to which nothing was committed but its
// schema; the played one begins with none.
const schemaVersion = 1

func newLockstep(l *ledger, tables Tables) *lockstep {
	if tables == nil {
		return nil
	}
	s := &lockstep{l: l, tables: tables, stores: map[string]*simhooks.Store{}, seqs: map[int64]int64{}}
	var err error
	if s.eye, err = tables.Store(); err != nil {
		s.differ("the tables cannot be opened: %v", err)
		return nil
	}
	return s
}

// close gives the connections back.
func (s *lockstep) close() {
	for _, each := range s.stores {
		each.Close()
	}
	s.eye.Close()
}

func (s *lockstep) differ(format string, args ...any) {
	s.l.w.breach("G2", "the real tables: "+format, args...)
}

// must takes what the tables may never refuse.
func (s *lockstep) must(what string, err error) {
	if err != nil {
		s.differ("%s: %v", what, err)
	}
}

// of is the store of a process, in the life that it has.
func (s *lockstep) of(m *machine) *simhooks.Store {
	key := fmt.Sprintf("%s/%d", m.name, m.life)
	if s.stores[key] == nil {
		opened, err := s.tables.Store()
		s.must("open", err)
		s.stores[key] = opened
	}
	return s.stores[key]
}

// leads begins an epoch.
func (s *lockstep) leads(epoch int64, holder string) {
	if s == nil {
		return
	}
	s.must("begin an epoch", s.tables.Owner(`UPDATE leader SET epoch = $1, holder = $2, since = now()`, epoch, holder))
	s.must("set the queues", s.eye.SetQueues(context.Background(), epoch, s.l.queues, s.l.policy))
}

// configured stores another policy.
func (s *lockstep) configured(epoch, version int64, policy quota.Config, played error) {
	if s == nil {
		return
	}
	_, err := s.eye.Configure(context.Background(), epoch, simhooks.Configuration{
		Settings: state.Settings{Queues: s.l.queues, Policy: policy}, Version: version + schemaVersion, Origin: "simulation",
	})
	s.agree(fmt.Sprintf("the configuration of version %d", version), played, err)
}

// kind of an error: what a leader tells apart.
func kind(err error) string {
	switch {
	case err == nil:
		return "stored"
	case errors.Is(err, simhooks.ErrFenced):
		return "fenced"
	case errors.Is(err, simhooks.ErrStale):
		return "stale"
	case simhooks.Suspect(err):
		return "refused"
	}
	return "failed"
}

func (s *lockstep) agree(what string, played, stored error) {
	if kind(played) != kind(stored) {
		s.differ("%s is %s, and played it is %s: %v; %v", what, kind(stored), kind(played), stored, played)
	}
}

// prepare makes a transaction for the real tables, on the memory that the process
// has; do writes it and compares the outcome with the played one.
func (s *lockstep) prepare(c state.Changes, record simhooks.Record) (do func(played error, outgoing []simhooks.Outgoing)) {
	if s == nil || s.l.w.cur == nil {
		return func(error, []simhooks.Outgoing) {}
	}
	c.Version += schemaVersion
	record.Version += schemaVersion
	store := s.of(s.l.w.cur.m)
	write, err := store.Prepare(c, record)
	if err != nil {
		s.differ("prepare version %d: %v", c.Version, err)
		return func(error, []simhooks.Outgoing) {}
	}
	return func(played error, outgoing []simhooks.Outgoing) {
		written, err := write(context.Background())
		s.agree(fmt.Sprintf("version %d of epoch %d", c.Version, c.Epoch), played, err)
		s.Commits++
		if err != nil {
			s.Refused++
			return
		}
		if len(written) != len(outgoing) {
			s.differ("version %d has %d messages, and played %d", c.Version, len(written), len(outgoing))
			return
		}
		s.number(c)
		if s.Commits%lookAfter == 0 {
			s.look()
		}
	}
}

// number learns the places that the messages of a commit have in the real outbox.
func (s *lockstep) number(c state.Changes) {
	if len(c.Messages) == 0 {
		return
	}
	last := int64(0)
	for _, seq := range s.seqs {
		last = max(last, seq)
	}
	unsent, err := s.eye.Unsent(context.Background(), []string{""}, last, len(c.Messages)+1)
	s.must("read the outbox", err)
	played := s.l.outbox[max(0, len(s.l.outbox)-len(c.Messages)):]
	if len(unsent) != len(played) {
		s.differ("version %d put %d messages into the outbox, and played %d", c.Version, len(unsent), len(played))
		return
	}
	for i, m := range unsent {
		if m.EventID != played[i].EventID {
			s.differ("message %s is where %s is when played", m.EventID, played[i].EventID)
		}
		s.seqs[played[i].Seq] = m.Seq
	}
}

// sent takes messages out of the outbox; so do the others what their names say.
func (s *lockstep) sent(epoch int64, seqs []int64, stream string, watermark simhooks.Watermark, played error) {
	if s == nil {
		return
	}
	stored := make([]int64, len(seqs))
	for i, seq := range seqs {
		stored[i] = s.seqs[seq]
	}
	s.agree("removal from the outbox", played, s.eye.Sent(context.Background(), epoch, stored, stream, watermark))
}

func (s *lockstep) watermarkSet(epoch int64, stream string, watermark simhooks.Watermark, played error) {
	if s != nil {
		s.agree("the mark of a stream", played, s.eye.SetWatermark(context.Background(), epoch, stream, watermark))
	}
}

func (s *lockstep) completed(epoch int64, before, after []simhooks.Outgoing, played error) {
	if s == nil {
		return
	}
	s.agree("completion", played, s.eye.CheckEpochAndAddManifests(context.Background(), epoch, before))
	if played == nil {
		s.same("completed messages", outlines(before), outlines(after))
	}
}

func (s *lockstep) tidied(epoch int64) {
	if s != nil && s.l.w.cur == nil {
		for _, key := range sortedKeys(s.stores) { // the leader's forgets what it knows; others know of no term that goes on
			s.must("tidy", s.stores[key].Tidy(context.Background(), epoch))
		}
	}
}
