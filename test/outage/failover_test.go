package outage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/test/recorder"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/suite/checker"
)

// Bounds of what a failover may take; they are held in a run with -failovers, on a
// machine that has nothing else to do.
const (
	mostRecovery   = 10 * time.Second
	mostUnadmitted = 60 * time.Second
)

// The primary of Postgres is killed under load, and the synchronous standby promoted:
// nothing that was acknowledged is lost, nothing is there twice.
func TestASynchronousStandbyTakesOver(t *testing.T) { failOver(t, true) }

// The standby that is promoted lacks the last commits: what NATS has of them comes
// back by itself, the rest is named, and nothing goes on that the ledger forgot.
func TestAnAsynchronousStandbyTakesOver(t *testing.T) {
	if *failovers == 0 {
		t.Skip("only with -failovers: it waits for losses, which takes long on a busy machine")
	}
	failOver(t, false)
}

// failOver fails over as often as -failovers says, after those that -keep has.
func failOver(t *testing.T, synchronous bool) {
	standby := asynchronousStandby
	if synchronous {
		standby = synchronousStandby
	}
	before, err := earlier(standby)
	if err == nil {
		err = keepThem()
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := before; i < before+max(1, *failovers); i++ {
		o, began := failover{Standby: standby}, time.Now()
		whole := t.Run(strconv.Itoa(i+1), func(t *testing.T) { failOverOnce(t, synchronous, &o) })
		if !whole && len(o.Broken) == 0 {
			o.Broken = []string{"it did not come to its end"}
		}
		fmt.Printf("%s standby, run %d of %.0f s: %d gangs, %d of them on their way; admitting again after %.1f s; the ledger had forgotten %v, named %d; forgotten gangs gone after %.1f s; broken: %q\n",
			standby, i+1, time.Since(began).Seconds(), o.Gangs, o.Outstanding, o.Recovered.Seconds(), o.Forgotten, o.Named, o.Cleared.Seconds(), o.Broken)
		if err := keepThem(o); err != nil {
			t.Fatal(err)
		}
	}
}

// replicated is a stack on a primary of Postgres and its standby.
type replicated struct {
	*load
	primary, standby *postgres.Server
	url              string // of both, for the owner, with the standby first
	checker          *checker.Checker
	recorder         *recorder.Recorder
}

func newReplicated(t *testing.T, synchronous bool) *replicated {
	t.Helper()
	r := &replicated{primary: pgtest.Local(t, postgres.Options{})}
	database, err := r.primary.CreateDatabase(t.Context(), "muster", "")
	var services string // of both, with the primary first
	if err == nil {
		r.standby, err = r.primary.Standby(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.standby.Stop)
	if synchronous {
		if err := r.primary.Synchronous(t.Context(), r.standby); err != nil {
			t.Fatal(err)
		}
	}
	if services, err = postgres.AnyOf(database, r.standby); err == nil {
		r.url, err = postgres.AnyOf(r.standby.DatabaseURL("muster"), r.primary)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.load = newLoad(newWorldOn(t, services, time.Minute), !synchronous)
	// When the old primary has come back it takes writes, which wait for a standby that it
	// does not have. The end of the stack must not find it.
	t.Cleanup(r.primary.Kill)
	if err := r.AddNodes(t.Context(), "gpu", 2, "cpu=32", "memory=64Gi", "nvidia.com/gpu=4"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	checked, err := checker.Connect(checker.Login{URL: r.NATSURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(checked.Close)
	r.checker = &checker.Checker{DatabaseURL: r.url, NATS: checked, Kube: r.Dynamic, Cluster: r.Pool}
	if r.recorder, err = recorder.Start(ctx, r.Kube); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(ended); r.checker.Watch(ctx) }()
	r.drive(ctx)
	return r
}

func failOverOnce(t *testing.T, synchronous bool, o *failover) {
	r := newReplicated(t, synchronous)
	r.some("gangs have run and ended", 3, func(e *event.WorkloadChanged) bool { return e.Phase == workload.Cancelled })
	if !synchronous {
		if err := r.standby.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		detached := time.Now()
		// What the standby will not know.
		r.some("a gang is submitted and ends", 1, func(e *event.WorkloadChanged) bool {
			return e.Times.Submitted.After(detached) && e.Phase.Final()
		})
		r.some("gangs are submitted and admitted", 2, func(e *event.WorkloadChanged) bool {
			return e.Times.Submitted.After(detached) && e.Phase == workload.Admitted
		})
	}
	o.Outstanding = len(r.unfinished())
	died := time.Now()
	r.primary.Kill()
	if err := r.standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.some("a gang is admitted after the failover", 1, func(e *event.WorkloadChanged) bool {
		return e.Phase == workload.Admitted && e.Times.Admitted.After(died)
	})
	o.Recovered = time.Since(died)
	o.Cleared = r.nothingForgottenRuns(died)
	r.some("gangs run that were submitted after the failover", 3, func(e *event.WorkloadChanged) bool {
		return e.Phase == workload.Running && e.Times.Submitted.After(died)
	})
	o.Forgotten, o.Named = r.recovered(), len(r.named())
	r.primaryComesBack()
	r.finish()
	r.meanwhile("nothing is left in Kubernetes", func() bool { return r.checker.NothingLeft(t.Context()) })
	o.Gangs = len(r.gangs)
	o.Broken = slices.Concat(r.checker.Verify(t.Context(), r.expected(), longPatience/3), r.recorder.Report().Violations)
	o.judge(synchronous)
	for _, wrong := range o.Broken {
		t.Error(wrong)
	}
}

// judge notes what a failover has lost that it may not lose, and what took too long.
func (o *failover) judge(synchronous bool) {
	wrong := func(format string, args ...any) { o.Broken = append(o.Broken, fmt.Sprintf(format, args...)) }
	forgotten := 0
	for _, count := range o.Forgotten {
		forgotten += count
	}
	if synchronous == (forgotten > 0) {
		wrong("the ledger had forgotten %v", o.Forgotten)
	}
	if o.Forgotten["lost"] > 0 {
		wrong("%d submissions are lost that NATS has kept", o.Forgotten["lost"])
	}
	if o.Named != o.Forgotten["ended"] || synchronous && o.Named > 0 {
		wrong("%d workloads ended whose records are lost, and the operator finds %d", o.Forgotten["ended"], o.Named)
	}
	if *failovers > 0 && (o.Recovered > mostRecovery || o.Cleared > mostUnadmitted) {
		wrong("admitting again took %s, and forgotten gangs went for %s: want at most %s and %s", o.Recovered, o.Cleared, mostRecovery, mostUnadmitted)
	}
}

// nothingForgottenRuns waits until each object of a gang is of an attempt to which the
// ledger has given places, and returns how long after the failover that was so.
func (r *replicated) nothingForgottenRuns(died time.Time) time.Duration {
	r.Helper()
	conn, err := pgx.Connect(r.Context(), r.url)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(r.Context())) }()
	ours := metav1.ListOptions{LabelSelector: "muster.dev/cluster=" + r.Pool}
	clusters := r.Dynamic.Resource(ray.Resource("rayclusters"))
	r.meanwhile("no gang runs that the ledger does not know", func() bool {
		objects, err := clusters.Namespace(r.Namespace).List(r.Context(), ours)
		if err != nil {
			return false
		}
		return !slices.ContainsFunc(objects.Items, func(object unstructuredObject) bool {
			var holds bool
			of := object.GetLabels()
			err := conn.QueryRow(r.Context(), `SELECT EXISTS (SELECT FROM workloads WHERE id = $1::uuid AND attempt = $2::int AND holding)`,
				of["muster.dev/workload"], of["muster.dev/attempt"]).Scan(&holds)
			return object.GetDeletionTimestamp() == nil && (err != nil || !holds)
		})
	})
	return time.Since(died)
}

// primaryComesBack starts the primary that died. It takes writes, knows nothing of the
// failover, and is the first host of queue-manager's URL, which begins without memory.
func (r *replicated) primaryComesBack() {
	r.Helper()
	back := time.Now()
	err := r.primary.Restart(r.Context())
	if err == nil {
		err = r.StopService(stack.QueueManager)
	}
	if err == nil {
		err = r.StartService(r.Context(), stack.QueueManager)
	}
	if err != nil {
		r.Fatal(err)
	}
	r.some("gangs run that were submitted after the old primary came back", 2, func(e *event.WorkloadChanged) bool {
		return e.Phase == workload.Running && e.Times.Submitted.After(back)
	})
	if found := r.recovered(); len(found) > 0 {
		r.Errorf("after the old primary came back the ledger had forgotten %v", found)
	}
	if r.counted("muster_old_primary_connections_total")[""] == 0 {
		r.Error("the old primary was not refused")
	}
}

// recovered is what queue-manager reports that it found, by result.
func (r *replicated) recovered() map[string]int {
	r.Helper()
	return r.counted("muster_recovered_workloads_total")
}

// counted reads a counter of queue-manager, by its label, without zeros.
func (r *replicated) counted(counter string) map[string]int {
	r.Helper()
	families, err := r.Runtimes()[stack.QueueManager].Metrics.Gather()
	if err != nil {
		r.Fatal(err)
	}
	counted := map[string]int{}
	for _, family := range families {
		if family.GetName() != counter {
			continue
		}
		for _, metric := range family.GetMetric() {
			var label string
			for _, pair := range metric.GetLabel() {
				label = pair.GetValue()
			}
			if count := int(metric.GetCounter().GetValue()); count > 0 {
				counted[label] = count
			}
		}
	}
	return counted
}

// some waits until the wanted number of workloads has events.
func (r *replicated) some(what string, count int, wanted func(*event.WorkloadChanged) bool) {
	r.Helper()
	seen := map[workload.ID]bool{}
	bustest.Await(r.heard, longPatience, what, func(e *event.WorkloadChanged) bool {
		if wanted(e) {
			seen[e.ID] = true
		}
		return len(seen) >= count
	}, func() string { return fmt.Sprintf("unfinished: %v", r.unfinished()) })
}
