package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/s2"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/app"
)

// Changes of the configuration and checks of rights are inputs like any other: with
// them decisions come out the same, before and after another process leads, warm or
// from what is stored; and without one of them they do not.
func TestChangedConfigurationAndRightsAreReplayed(t *testing.T) {
	t.Parallel()
	listed := func(who ...string) []app.Queue {
		return []app.Queue{{Name: "listed", Namespaces: []string{"team-b"}, Submitters: []workload.Submitters{{Who: who}}}}
	}
	w := newWorld(t, listed("http/alice", "http/bob")...)
	w.node("one", 4)
	quota := func(gpus string) string {
		return strings.Replace(oneQueue, "nominalQuota: 1", "nominalQuota: "+gpus, 1)
	}
	w.apply(quota("1"))
	first := w.submit(gangOf("first", "user-queue", 1))
	w.command(first, event.Present, 1)
	second := w.submit(gangOf("second", "user-queue", 1))
	w.waits(second, workload.ReasonQuota)
	w.apply(quota("2"))
	w.command(second, event.Present, 1)
	for name, submitter := range map[string]string{"of-alice": "http/alice", "of-bob": "http/bob"} {
		gang := gangOf(name, "listed", 100) // waits for ever
		gang.Submitter = submitter
		w.phase(w.submit(gang), workload.Queued)
	}
	w.stop()

	// The next leader's file has taken bob off the list, so who waits is looked at.
	w.config.Queues = listed("http/alice")
	if err := w.config.Validate(); err != nil {
		t.Fatal(err)
	}
	w.start()
	if lost := w.phase(event.WorkloadID("test", "of-bob"), workload.Failed); lost.Reason.Kind != workload.ReasonForbidden {
		t.Errorf("of-bob has failed for %+v", lost.Reason)
	}
	leader := w.stopOnce
	w.start()           // a standby
	w.apply(quota("3")) // by the leader, whom the standby follows
	third := w.submit(gangOf("third", "user-queue", 1))
	w.command(third, event.Present, 1)
	leader() // and takes over from
	fourth := w.submit(gangOf("fourth", "user-queue", 1))
	w.waits(fourth, workload.ReasonQuota)
	w.apply(quota("4"))
	w.command(fourth, event.Present, 1)
	w.stop()

	report := w.replay()
	if report.Difference != nil || report.Terms != 3 {
		t.Fatalf("replayed: %+v %+v", report, report.Difference)
	}
	kinds := w.recordedKinds()
	if want := []int{2, 1, 1}; !slices.Equal(kinds[decisionlog.Configure], want) {
		t.Errorf("changes of the configuration by term: %v, want %v", kinds[decisionlog.Configure], want)
	}
	// Each change is followed by one, and each term begins with one.
	if want := []int{3, 2, 2}; !slices.Equal(kinds[decisionlog.CheckRights], want) {
		t.Errorf("checks of rights by term: %v, want %v", kinds[decisionlog.CheckRights], want)
	}
	for _, kind := range []string{decisionlog.Configure, decisionlog.CheckRights} {
		t.Run("without "+kind, func(t *testing.T) {
			w.withoutKind(kind, func() {
				if report := w.replay(); report.Difference == nil {
					t.Errorf("without any %q decisions come out the same", kind)
				}
			})
		})
	}
	if report := w.replay(); report.Difference != nil {
		t.Errorf("changed back: %+v", report.Difference)
	}
}

// record is what is kept of a decision.
type record struct {
	Epoch, Number int64
	Inputs        []byte
}

func (w *world) records() []record {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.ownerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.ctx) }()
	rows, _ := conn.Query(w.ctx, `SELECT epoch, number, inputs FROM decisions ORDER BY epoch, number`) // CollectRows returns the error
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[record])
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) inputsOf(r record) []decisionlog.Input {
	w.t.Helper()
	content, err := s2.Decode(nil, r.Inputs)
	if err != nil {
		w.t.Fatal(err)
	}
	inputs, err := decisionlog.Inputs(content)
	if err != nil {
		w.t.Fatal(err)
	}
	return inputs
}

// recordedKinds counts the inputs of each kind by term.
func (w *world) recordedKinds() map[string][]int {
	w.t.Helper()
	counts := map[string][]int{}
	terms := map[int64]int{}
	for _, r := range w.records() {
		if _, known := terms[r.Epoch]; !known {
			terms[r.Epoch] = len(terms)
		}
		for _, in := range w.inputsOf(r) {
			for len(counts[in.Kind]) <= terms[r.Epoch] {
				counts[in.Kind] = append(counts[in.Kind], 0)
			}
			counts[in.Kind][terms[r.Epoch]]++
		}
	}
	return counts
}

// withoutKind does something while the inputs of a kind are not recorded.
func (w *world) withoutKind(kind string, do func()) {
	w.t.Helper()
	var changed []record
	for _, r := range w.records() {
		var rest decisionlog.Recorder
		inputs := w.inputsOf(r)
		for _, in := range inputs {
			if in.Kind != kind {
				rest.Note(in)
			}
		}
		if kept := slices.DeleteFunc(slices.Clone(inputs), func(in decisionlog.Input) bool { return in.Kind == kind }); len(kept) == len(inputs) {
			continue
		}
		changed = append(changed, r)
		_, written := rest.Flush()
		w.asOwner(`UPDATE decisions SET inputs = $1 WHERE epoch = $2 AND number = $3`, s2.Encode(nil, written), r.Epoch, r.Number)
	}
	do()
	for _, r := range changed {
		w.asOwner(`UPDATE decisions SET inputs = $1 WHERE epoch = $2 AND number = $3`, r.Inputs, r.Epoch, r.Number)
	}
}
