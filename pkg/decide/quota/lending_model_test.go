package quota_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/quota"
)

// lender is a queue or a cohort as Kueue's documentation of cohorts has it: what its members
// leave over goes to its parent, no more than the lending limit, and what they lack comes from
// there, no more than the borrowing limit. Limits are -1 for none.
type lender struct {
	name, parent          string
	nominal, borrow, lend int64
}

// lenders are the queues, then the cohorts, each before its parent.
type lenders []lender

// allow reports whether the queues may use so much: what one cohort lends to another is a flow
// from the leaves to the root, where nothing may lack.
func (all lenders) allow(used map[string]int64) bool {
	given := map[string]int64{} // by the members of a cohort together; less than zero is taken
	for _, n := range all {
		left := n.nominal + given[n.name] - used[n.name]
		switch {
		case n.parent == "" && left < 0, n.parent != "" && n.borrow >= 0 && -left > n.borrow:
			return false
		case n.lend >= 0:
			left = min(left, n.lend)
		}
		given[n.parent] += left
	}
	return true
}

// drawLenders draws a tree of four queues in four cohorts, and its configuration.
func drawLenders(t *rapid.T) (all lenders, config string) {
	limit := func(name string) int64 { // none, most of the time
		return rapid.OneOf(rapid.Just(int64(-1)), rapid.Just(int64(-1)), rapid.Int64Range(0, 9)).Draw(t, name)
	}
	one := func(name, parent string, cohort bool) lender {
		n := lender{name, parent, rapid.Int64Range(0, 9).Draw(t, "nominal of "+name), -1, -1}
		if parent == "" {
			return n
		}
		n.borrow, n.lend = limit("borrowing limit of "+name), limit("lending limit of "+name)
		if !cohort && n.lend >= 0 { // of a cohort it may be more than the nominal quota
			n.lend = min(n.lend, n.nominal)
		}
		return n
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, one(name, rapid.SampledFrom([]string{"root", "left", "right", "inner"}).Draw(t, "cohort of "+name), false))
	}
	for _, pair := range [][2]string{{"inner", "left"}, {"left", "root"}, {"right", "root"}, {"root", ""}} {
		all = append(all, one(pair[0], pair[1], true))
	}
	limits := func(n lender) string {
		var texts []string
		if n.borrow >= 0 {
			texts = append(texts, fmt.Sprintf(`"borrowingLimit": "%d"`, n.borrow))
		}
		if n.lend >= 0 {
			texts = append(texts, fmt.Sprintf(`"lendingLimit": "%d"`, n.lend))
		}
		return strings.Join(texts, ", ")
	}
	var queues, cohorts []string
	for i, n := range all {
		if i < 4 {
			queues = append(queues, cpuQueue(n.name, n.parent, fmt.Sprint(n.nominal), limits(n)))
		} else {
			cohorts = append(cohorts, cpuCohort(n.name, n.parent, fmt.Sprint(n.nominal), limits(n)))
		}
	}
	return all, policy(cohorts, queues...)
}

// drawnTree returns the tree of a configuration that was drawn.
func drawnTree(t *rapid.T, text string) *quota.Tree {
	var c quota.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	tree, err := quota.New(c)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return tree
}

// TestATreeLendsAsKueuesCohorts: what a queue may use, at present and with nothing in use, is what
// the documentation of cohorts allows, in trees with limits everywhere.
func TestATreeLendsAsKueuesCohorts(t *testing.T) {
	t.Parallel()
	allowed, refused := 0, 0
	check := func(t *rapid.T) {
		all, config := drawLenders(t)
		tree := drawnTree(t, config)
		used := map[string]int64{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name, n := all[rapid.IntRange(0, 3).Draw(t, "queue")].name, rapid.Int64Range(1, 6).Draw(t, "cpus")
			queue := tree.Queue(name)
			if possible := all.allow(map[string]int64{name: n}); possible == queue.ExceedsPotential(cpus(n)) {
				t.Fatalf("%s could use %d of an empty tree: %t, want %t", name, n, !possible, possible)
			}
			used[name] += n
			may := all.allow(used)
			if got := queue.Fits(cpus(n)); got != may {
				t.Fatalf("%s may use %d more: %t, want %t; with it used are %v of %+v", name, n, got, may, used, all)
			}
			if may {
				queue.Allocate(cpus(n))
				allowed++
			} else {
				used[name] -= n
				refused++
			}
		}
	}
	for rounds := 0; rounds < 40 && (allowed == 0 || refused == 0); rounds++ {
		rapid.Check(t, check)
	}
	if allowed == 0 || refused == 0 {
		t.Errorf("%d uses were allowed and %d were not, want some of both", allowed, refused)
	}
}
