package outage

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/test/suite/kept"
)

var (
	failovers = flag.Int("failovers", 0, "number of failovers of Postgres of each kind, with figures; 0 for one")
	keep      = flag.String("keep", "", "add the failovers to those in this `file`")
	table     = flag.String("table", "", "write the table of all failovers that are kept into this page")
)

// Kinds of standbys.
const (
	synchronousStandby  = "synchronous"
	asynchronousStandby = "asynchronous"
)

// pageWith is a page with the table of failovers.
func pageWith(file string) kept.Page { return kept.Page{File: file, Table: "failovers"} }

// failover is what came of one.
type failover struct {
	Standby     string         `json:"standby"`
	Gangs       int            `json:"gangs"`               // submitted at all
	Outstanding int            `json:"outstanding"`         // of them, not at their end when the primary died
	Recovered   time.Duration  `json:"recovered"`           // from the death of the primary until a gang was admitted
	Cleared     time.Duration  `json:"cleared"`             // until nothing ran any more that the ledger does not know
	Forgotten   map[string]int `json:"forgotten,omitempty"` // what queue-manager found that the ledger had lost, by result
	Named       int            `json:"named,omitempty"`     // in the dead-letter stream
	Broken      []string       `json:"broken,omitempty"`    // promises
}

// earlier counts the failovers of a kind that are kept.
func earlier(standby string) (count int, err error) {
	if *keep == "" {
		return 0, nil
	}
	all, err := kept.Read[failover](*keep)
	for _, o := range all {
		if o.Standby == standby {
			count++
		}
	}
	return count, err
}

// keepThem adds failovers to those that are kept, and makes the table of all.
func keepThem(added ...failover) error {
	if *keep == "" {
		return nil
	}
	return kept.Change(*keep, func(all []failover) []failover { return append(all, added...) }, pageWith(*table), tableOf)
}

// tableOf is a row for each kind of standby.
func tableOf(all []failover) string {
	var b strings.Builder
	b.WriteString("| standby | failovers | gangs | result | the ledger had forgotten | admitting again: median, longest | nothing forgotten runs after: median, longest |\n|---|---|---|---|---|---|---|\n")
	for _, standby := range []string{synchronousStandby, asynchronousStandby} {
		var count, gangs, requeued, removed, ended int
		var recovered, cleared []time.Duration
		var broken []string
		for _, o := range all {
			if o.Standby != standby {
				continue
			}
			count, gangs, ended = count+1, gangs+o.Gangs, ended+o.Named
			recovered, cleared, broken = append(recovered, o.Recovered), append(cleared, o.Cleared), append(broken, o.Broken...)
			requeued, removed = requeued+o.Forgotten["requeued"], removed+o.Forgotten["removed"]
		}
		if count == 0 {
			continue
		}
		result, forgot := "nothing lost, doubled, leaked or over-committed", "nothing"
		if len(broken) > 0 {
			result = fmt.Sprintf("**breaches: %d**: %s", len(broken), strings.ReplaceAll(broken[0], "|", "/"))
		}
		if requeued+ended > 0 {
			forgot = fmt.Sprintf("%d workloads queued again, %d of them after the removal of an attempt; %d that had ended, each named", requeued, removed, ended)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s | %s | %s |\n", standby, count, gangs, result, forgot, kept.MedianAndLongest(recovered), kept.MedianAndLongest(cleared))
	}
	return b.String()
}

// TestTheTableOfFailovers: the page has the table of the failovers that are kept.
func TestTheTableOfFailovers(t *testing.T) {
	t.Parallel()
	all, err := kept.Read[failover]("outcomes.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := kept.Table(pageWith("../../docs/reliability.md"))
	if got := tableOf(all); err != nil || got != want {
		t.Errorf("%v; the table of outcomes.json is\n%s\nthe page has\n%s\nrun `make failovers`", err, got, want)
	}
}

func TestTableOf(t *testing.T) {
	t.Parallel()
	got := strings.Split(tableOf([]failover{
		{Standby: asynchronousStandby, Gangs: 20, Recovered: time.Second, Cleared: 3 * time.Second, Forgotten: map[string]int{"requeued": 2, "removed": 1, "ended": 1}, Named: 1},
		{Standby: asynchronousStandby, Gangs: 10, Recovered: 2 * time.Second, Cleared: time.Second, Forgotten: map[string]int{"requeued": 3}, Broken: []string{"a gang was lost"}},
		{Standby: synchronousStandby, Gangs: 30, Recovered: time.Second},
	}), "\n")
	for _, want := range []string{
		"| synchronous | 1 | 30 | nothing lost, doubled, leaked or over-committed | nothing | 1.0 s, 1.0 s | 0.0 s, 0.0 s |",
		"| asynchronous | 2 | 30 | **breaches: 1**: a gang was lost | 5 workloads queued again, 1 of them after the removal of an attempt; 1 that had ended, each named | 2.0 s, 2.0 s | 3.0 s, 3.0 s |",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no row\n%s\nin\n%s", want, strings.Join(got, "\n"))
		}
	}
}
