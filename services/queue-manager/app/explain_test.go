package app_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// hardGang is one for which each search of places spends its budget: whatever might
// admit it takes long to try.
func hardGang(name, queue string, nodes int) workload.Workload {
	gang := gangOf(name, queue, 1)
	gang.PodSets = nil
	for i, asks := range [][2]int64{{3, 4}, {1, 5}, {6, 1}, {4, 3}, {2, 6}, {5, 2}, {3, 5}, {4, 2}} {
		gang.PodSets = append(gang.PodSets, workload.PodSet{
			Name: fmt.Sprintf("set-%d", i), Role: workload.RoleWorker, Count: 4 * nodes, Template: workload.Template{
				Requests: resource.List{"cpu": 492 * asks[0], "memory": 2016 << 20 * asks[1], "pods": 1},
				Spread:   []workload.Spread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 4}},
			},
		})
	}
	return gang
}

// TestQuestionsDoNotDelayAdmissions: many callers ask again and again why gangs wait
// that take long to explain. Gangs are admitted meanwhile, each before most questions
// have been answered, and a client that asks too much is asked to try again.
func TestQuestionsDoNotDelayAdmissions(t *testing.T) {
	t.Parallel()
	const nodes, admitted, callers = 3, 12, 12
	w := newWorld(t, app.Queue{Name: "hard", Namespaces: []string{"hard"}}, app.Queue{Name: "team", Namespaces: []string{"team"}})
	for i := range nodes {
		w.node(fmt.Sprintf("node-%d", i), 8)
	}
	hard := w.submit(hardGang("hard", "hard", nodes))
	if why := w.waits(hard, workload.ReasonUnknown).Reason; !strings.HasPrefix(why.Message, "undecided: ") {
		t.Fatalf("the gang is not as hard as it has to be: %+v", why)
	}
	var answered, busy, asked atomic.Int64
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	for range callers {
		nc, err := nats.Connect(w.config.NATS.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		client := query.NewClient(nc)
		for range 4 {
			go func() {
				for ctx.Err() == nil {
					asked.Add(1)
					_, err := client.Explain(ctx, query.ExplainRequest{ID: hard})
					var problem *query.ProblemError
					switch {
					case err == nil:
						answered.Add(1)
					case errors.As(err, &problem) && problem.Busy:
						busy.Add(1)
						select {
						case <-ctx.Done():
						case <-time.After(20 * time.Millisecond):
						}
					}
				}
			}()
		}
	}
	before := answered.Load()
	for i := range admitted {
		w.phase(w.submit(gangOf(fmt.Sprintf("easy-%d", i), "team", 1)), workload.Admitted)
	}
	if between := answered.Load() - before; between > 5*admitted {
		t.Errorf("%d questions were answered while %d gangs were admitted one after the other", between, admitted)
	}
	if busy.Load() == 0 {
		t.Errorf("of %d questions none was refused", asked.Load())
	}
}

// TestATenantHearsOfHisOwn: who asks for a tenant hears nothing of a workload that he
// could not have submitted, and nothing of those of other queues.
func TestATenantHearsOfHisOwn(t *testing.T) {
	t.Parallel()
	only := func(who string) []workload.Submitters { return []workload.Submitters{{Who: []string{who}}} }
	w := newWorld(t, app.Queue{Name: "ours", Namespaces: []string{"ours"}, Submitters: only("http/ann")}, app.Queue{Name: "theirs", Namespaces: []string{"theirs"}, Submitters: only("http/bob")})
	w.node("node", 2)
	as := func(gang workload.Workload, who string) workload.ID {
		gang.Submitter = who
		return w.submit(gang)
	}
	holds := as(gangOf("holds-all", "theirs", 2), "http/bob")
	w.phase(holds, workload.Admitted)
	waits := as(gangOf("waits", "ours", 2), "http/ann")
	w.phase(waits, workload.Queued)
	for _, c := range []struct {
		id    workload.ID
		who   string
		hears bool
	}{{waits, "http/ann", true}, {waits, "http/bob", false}, {holds, "http/ann", false}, {waits, "", true}} {
		t.Run(c.who, func(t *testing.T) {
			answer, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: c.id, For: c.who})
			if (err == nil) != c.hears {
				t.Errorf("%q hears of %s: %+v, %v", c.who, c.id, answer, err)
				return
			}
			if !c.hears {
				if !strings.Contains(err.Error(), "is not live") {
					t.Errorf("%q gets %v", c.who, err)
				}
				return
			}
			after := 0
			for _, change := range answer.Changes {
				if strings.Contains(change.Message, "holds-all") {
					t.Errorf("%q gets %q", c.who, change.Message)
				}
				after += len(change.Workloads)
			}
			if told := after > 0; told != (c.who == "") {
				t.Errorf("%q hears of %d workloads: %+v", c.who, after, answer.Changes)
			}
		})
	}
}
