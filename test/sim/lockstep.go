package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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

// lookAfter is after how many commits all that is stored is compared.
const lookAfter = 40

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
	unsent, err := s.eye.Unsent(context.Background(), "", last, len(c.Messages)+1)
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
func (s *lockstep) sent(epoch int64, seqs []int64, stream string, mark simhooks.Watermark, played error) {
	if s == nil {
		return
	}
	stored := make([]int64, len(seqs))
	for i, seq := range seqs {
		stored[i] = s.seqs[seq]
	}
	s.agree("removal from the outbox", played, s.eye.Sent(context.Background(), epoch, stored, stream, mark))
}

func (s *lockstep) marked(epoch int64, stream string, mark simhooks.Watermark, played error) {
	if s != nil {
		s.agree("the mark of a stream", played, s.eye.SetWatermark(context.Background(), epoch, stream, mark))
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
func (s *lockstep) probed(c state.Changes, record simhooks.Record, played []simhooks.Refusal) {
	if s == nil {
		return
	}
	c.Version += schemaVersion
	record.Version += schemaVersion
	stored, err := s.eye.Probe(context.Background(), c, record)
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

func (s *lockstep) kept(epoch int64, aside []state.Quarantined, played error) {
	if s != nil {
		s.agree("quarantine", played, s.eye.Quarantine(context.Background(), epoch, aside))
	}
}

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
	unsent, err := s.eye.Unsent(ctx, "", 0, 1<<20)
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
	marks, err := s.eye.Watermarks(ctx)
	s.must("read the marks", err)
	for _, name := range slices.Sorted(maps.Keys(s.l.marks)) {
		if a, b := marks[name], s.l.marks[name]; a.Last != b.Last || !a.Created.Equal(b.Created.Truncate(time.Microsecond)) {
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
