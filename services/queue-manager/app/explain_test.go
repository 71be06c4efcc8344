package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/decide/placement/certificate"
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
			if shown := after > 0; shown != (c.who == "") {
				t.Errorf("%q hears of %d workloads: %+v", c.who, after, answer.Changes)
			}
		})
	}
}

// TestExplainHasACertificate: with the question for it comes a proof that the workload
// fits nowhere, which can be verified and has no name of a node; not for a workload that
// runs.
func TestExplainHasACertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "team", Namespaces: []string{"team"}})
	for i := range 3 {
		w.node(fmt.Sprintf("secret-%d", i), 2)
	}
	runs := w.submit(gangOf("runs", "team", 2))
	w.phase(runs, workload.Admitted)
	waits := w.submit(gangOf("waits", "team", 5))
	w.waits(waits, workload.ReasonFit)
	for _, who := range []string{"", "http/ann"} {
		t.Run(who, func(t *testing.T) {
			answer, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: waits, For: who, Certificate: true})
			if err != nil || answer.Certificate == nil {
				t.Fatalf("no certificate: %v, %q", err, answer.NoCertificate)
			}
			if answer.Certificate.Workload != waits || answer.Certificate.PodSets[len(answer.Certificate.PodSets)-1].Count != 5 {
				t.Errorf("it is of another workload: %+v", answer.Certificate)
			}
			if err := certificate.Verify(answer.Certificate); err != nil {
				t.Errorf("it proves nothing: %v", err)
			}
			content, err := json.Marshal(answer.Certificate)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), "secret") {
				t.Errorf("it names a node: %s", content)
			}
		})
	}
	for _, c := range []struct {
		id          workload.ID
		certificate bool
		none        string
	}{{runs, true, "it does not wait"}, {waits, false, ""}} {
		t.Run(c.none, func(t *testing.T) {
			answer, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: c.id, Certificate: c.certificate})
			if err != nil || answer.Certificate != nil || answer.NoCertificate != c.none {
				t.Errorf("certificate %+v, why not: %q, %v; want none: %q", answer.Certificate, answer.NoCertificate, err, c.none)
			}
		})
	}
}
