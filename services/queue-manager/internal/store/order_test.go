package store_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// waits adds a workload that waits.
func waits(t *testing.T, l ledger, order int64, name, queue string, priority int32) {
	t.Helper()
	changes := admitted(order, name, 1, 1, 1)
	w := &changes.Added[0]
	w.Phase, w.Holding, w.Cluster, changes.Reserved = workload.Queued, false, "", nil
	w.Queue, w.Priority = queue, priority
	l.commit(t, changes)
}

// TestPagesInTheOrderOfQueues: pages follow the positions whatever was submitted first, have each
// workload once, and go on behind one that does not wait any more.
func TestPagesInTheOrderOfQueues(t *testing.T) {
	t.Parallel()
	l := open(t)
	if err := l.SetQueues(t.Context(), l.term.Epoch, []state.Queue{
		{Name: "a", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}, {Name: "z", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO},
	}, quota.Config{}); err != nil {
		t.Fatal(err)
	}
	for i, each := range []struct {
		name, queue string
		priority    int32
	}{
		{"z-low", "z", -1}, {"a-first", "a", 0}, {"z-high", "z", 9}, {"a-second", "a", 0}, {"a-high", "a", 5}, {"z-mid", "z", 0}, {"a-third", "a", 0},
	} {
		waits(t, l, int64(i+1), each.name, each.queue, each.priority)
	}
	running := admitted(90, "runs", 1, 1, 1)
	running.Added[0].Phase, running.Added[0].Queue, running.Added[0].Priority = workload.Running, "a", 0
	l.commit(t, running)
	queued := []workload.Phase{workload.Queued}
	all := []string{"a-high", "a-first", "a-second", "a-third", "z-high", "z-mid", "z-low"}
	for name, c := range map[string]struct {
		queue string
		limit int
		want  []string
	}{
		"all at once": {"", 10, all}, "two at a time": {"", 2, all}, "one at a time": {"", 1, all},
		"a queue": {"z", 10, all[4:]}, "a queue one at a time": {"z", 1, all[4:]}, "no queue": {"y", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			request := query.WorkloadsRequest{Queue: c.queue, Phases: queued, Order: query.OrderPosition, Limit: c.limit}
			for more := true; more && len(got) <= len(all); {
				answer, err := l.Workloads(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range answer.Workloads {
					if got = append(got, w.Name); int(w.Position) != positionIn(c.want, w.Name) {
						t.Errorf("%s has position %d", w.Name, w.Position)
					}
					request.AfterID = w.ID
				}
				more = answer.Next != 0
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the pages have %v, want %v", got, c.want)
			}
		})
	}
	t.Run("behind one that runs", func(t *testing.T) {
		t.Parallel()
		answer, err := l.Workloads(t.Context(), query.WorkloadsRequest{Phases: queued, Order: query.OrderPosition, AfterID: running.Added[0].ID})
		if err != nil || len(answer.Workloads) != 3 || answer.Workloads[0].Name != "z-high" {
			t.Errorf("%v, %v", err, answer.Workloads)
		}
	})
	t.Run("behind none", func(t *testing.T) {
		t.Parallel()
		answer, err := l.Workloads(t.Context(), query.WorkloadsRequest{Phases: queued, Order: query.OrderPosition, AfterID: "00000000-0000-5000-8000-000000000000"})
		if err != nil || len(answer.Workloads) != 0 {
			t.Errorf("%v, %v", err, answer.Workloads)
		}
	})
	t.Run("of what has no position", func(t *testing.T) {
		t.Parallel()
		_, err := l.Workloads(t.Context(), query.WorkloadsRequest{Phases: []workload.Phase{workload.Running}, Order: query.OrderPosition})
		if err == nil || !strings.Contains(err.Error(), "want phase queued alone") {
			t.Errorf("error %v", err)
		}
	})
}

// positionIn is the place of a name among those of its queue, which is its first letter.
func positionIn(names []string, name string) (position int) {
	for _, other := range names {
		if other[0] == name[0] {
			position++
		}
		if other == name {
			return position
		}
	}
	return 0
}

// TestTheOrderOfQueuesHasAnIndex: a page of many that wait is read without sorting them.
func TestTheOrderOfQueuesHasAnIndex(t *testing.T) {
	t.Parallel()
	l := open(t)
	waits(t, l, 1, "waits", "q", 0)
	db, err := pgx.Connect(t.Context(), l.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	seedWaiting(t, db, l.term.Epoch)
	for name, request := range map[string]query.WorkloadsRequest{"all": {}, "of a queue": {Queue: "q"}} {
		t.Run(name, func(t *testing.T) {
			request.Phases, request.Order, request.Limit = []workload.Phase{workload.Queued}, query.OrderPosition, 100
			plan, err := l.PlanOf(t.Context(), request)
			if err != nil || strings.Contains(plan, "Sort") || !strings.Contains(plan, "workloads_order") {
				t.Errorf("%v, the plan sorts: %s", err, plan)
			}
		})
	}
}

// TestALaterPageReadsNothingBefore: a page far from the head reads as much of the index as it has.
func TestALaterPageReadsNothingBefore(t *testing.T) {
	t.Parallel()
	l := open(t)
	waits(t, l, 1, "waits", "q", 0)
	db, err := pgx.Connect(t.Context(), l.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	seedWaiting(t, db, l.term.Epoch)
	var last string
	if err := db.QueryRow(t.Context(), `SELECT id FROM workloads WHERE name = 'w4000'`).Scan(&last); err != nil {
		t.Fatal(err)
	}
	const page = 100
	read := regexp.MustCompile(`Scan .*workloads.* rows=(\d+)[^(]*loops=1\)`)
	for name, request := range map[string]query.WorkloadsRequest{"all": {}, "of a queue": {Queue: "q"}} {
		t.Run(name, func(t *testing.T) {
			request.Phases, request.Order, request.Limit, request.AfterID = []workload.Phase{workload.Queued}, query.OrderPosition, page, workload.ID(last)
			plan, err := l.PlanOf(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for _, scan := range read.FindAllStringSubmatch(plan, -1) {
				n, err := strconv.Atoi(scan[1])
				if err != nil {
					t.Fatal(err)
				}
				rows += n
			}
			if rows < page || rows > 2*page || strings.Contains(plan, "Rows Removed") {
				t.Errorf("a page of %d reads %d: %s", page, rows, plan)
			}
		})
	}
}
