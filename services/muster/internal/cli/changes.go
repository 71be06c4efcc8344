package cli

import (
	"io"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/output"
)

// changes prints a line for each change of selected workloads below their list, with the
// columns where those of the list are. It is for files and pipes: a terminal shows liveView.
type changes struct {
	out    io.Writer
	picked picked
	format output.Format
	known  map[workload.ID]workload.Record // selected or not
	widths []int
	// replayed: the steps begin with the last of each workload, which may have ended long ago.
	replayed bool
}

// newChanges prints the list that the changes are of.
func newChanges(out io.Writer, selected picked, format output.Format, all []workload.Record, headless bool) (*changes, error) {
	c := &changes{out: out, picked: selected, format: format, known: map[workload.ID]workload.Record{}}
	for _, r := range all {
		c.known[r.ID] = r
	}
	list := c.table(selected.of(slices.Clone(all), time.Now()))
	list.NoHeader = headless
	c.widths = list.Widths(0)
	for _, phase := range workload.Phases() { // others may come
		at := slices.Index(list.Header, "PHASE")
		c.widths[at] = max(c.widths[at], len(phase))
	}
	return c, list.WriteRows(out, "", c.widths)
}

// table has a column for the namespace unless all that may come is of one.
func (c *changes) table(records []workload.Record) output.Table {
	t := output.NamespacedWorkloads(records, c.format, time.Now())
	if c.format != output.Wide && (c.picked.namespace != "" || c.picked.id != "") {
		t.Drop("NAMESPACE")
	}
	return t
}

// step prints what has changed of a selected workload, or of one that was selected until
// then.
func (c *changes) step(s follow.Step) error {
	r := s.Record
	if r.Phase == workload.Rejected {
		return nil
	}
	before, known := c.known[r.ID]
	if known && looksLike(&before, &r) || !known && c.replayed && r.Phase.Final() {
		return nil
	}
	c.known[r.ID] = r
	now := time.Now()
	if !c.picked.has(&r, now) && !(known && c.picked.has(&before, now)) {
		return nil
	}
	t := c.table([]workload.Record{r})
	t.NoHeader = true
	return t.WriteRows(c.out, "", c.widths)
}

// looksLike reports whether two records of a workload are one line. The reason of an event
// has less detail than that of a list, and an event of a waiting one no position.
func looksLike(a, b *workload.Record) bool {
	return a.Phase == b.Phase && a.Attempt == b.Attempt && a.Queue == b.Queue && a.Holding == b.Holding && a.Priority == b.Priority &&
		output.Reason(a.Reason) == output.Reason(b.Reason)
}
