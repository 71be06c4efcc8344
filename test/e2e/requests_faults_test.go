package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/recorder"
	"muster.dev/muster/test/stack"
)

// lanes is how many gangs wait at once. Each has a pool of its own, so that no other gang
// takes its nodes, which a request does not reserve.
const lanes = 4

// gangsVariable is the variable of the environment with the number of gangs. The fewest are
// one with which nothing goes wrong, and one whose request fails.
const (
	gangsVariable = "MUSTER_PROVISIONED_GANGS"
	fewestGangs   = 2
)

// What goes wrong with a gang. In each round all of them do, each in another lane.
const (
	nothingFails  = iota
	requestFails  // the first request: it is repeated
	stockPartial  // there are too few nodes at first
	nodeLost      // a node is gone before the gang uses it, in every other round: else
	gangCancelled // the gang is, while it waits
)

// laned is a gang with its lane.
type laned struct {
	id      workload.ID
	lane    int
	workers int
	fault   int
}

// A recorder that shares no code with the services watches requests, nodes and pods, while
// requests fail, nodes are lost, and the leader or the dispatcher is replaced. The
// normal run has the fewest gangs that show something; MUSTER_PROVISIONED_GANGS sets how many
// there are in a long one.
func TestRequestsForNodesUnderFaults(t *testing.T) {
	t.Parallel()
	gangs := fewestGangs
	if text := os.Getenv(gangsVariable); text != "" {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			t.Fatalf("%s=%q: want a number of gangs", gangsVariable, text)
		}
		gangs = count
	}
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=64", "memory=256Gi")
	for lane := range lanes {
		w.lanePool("add", lane, "--class", w.ownClass(), "--max", "9", "--idle", "10s",
			"--resource", "cpu=8", "--resource", "memory=32Gi", "--resource", "nvidia.com/gpu=1", "--label", "lane="+strconv.Itoa(lane))
		t.Cleanup(func() { _ = w.NodePool(w.ctx, "remove", laneName(lane)) })
	}
	w.asksForNodes(w.ownClass(), `,"retryStrategy":{"backoffBaseSeconds":1}`)
	seen, err := recorder.StartRequests(w.ctx, w.Kube, w.Dynamic, w.Namespace, "test.muster.dev/pool="+w.Pool)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := 0; gangs > 0 && !t.Failed(); round++ {
		w.faultyRound(seen, random, round, min(gangs, lanes))
		gangs -= lanes
	}
	w.nothingAsked()
	w.until("the recorder sees nothing that is left", func() bool { return len(seen.Left()) == 0 })
	report := seen.Report()
	for _, violation := range report.Violations {
		t.Error(violation)
	}
	t.Logf("%d requests, %d provisioned, %d failed; %d nodes came for them; %d gangs ran whole",
		report.Requests, report.Provisioned, report.Failed, report.Nodes, report.Whole)
	if report.Provisioned == 0 || report.Failed == 0 || report.Whole == 0 {
		t.Errorf("the run has shown too little: %+v", report)
	}
}

func laneName(lane int) string { return "lane" + strconv.Itoa(lane) }

func (w *world) lanePool(command string, lane int, flags ...string) {
	w.t.Helper()
	if err := w.NodePool(w.ctx, command, laneName(lane), flags...); err != nil {
		w.t.Fatal(err)
	}
}

// faultyRound has a number of gangs ask for nodes, run and end.
func (w *world) faultyRound(seen *recorder.Requests, random *rand.Rand, round, gangs int) {
	w.t.Helper()
	faults := []int{nothingFails, requestFails, stockPartial, nodeLost + round%2}
	var all []*laned
	for i, lane := range random.Perm(lanes)[:gangs] {
		g := &laned{lane: lane, workers: 2 + random.IntN(2), fault: faults[i]}
		all = append(all, g)
		switch g.fault {
		case requestFails:
			w.lanePool("set", lane, "--fail", "1")
		case stockPartial, gangCancelled:
			w.lanePool("set", lane, "--stock", strconv.Itoa(g.workers-1))
		}
		name := fmt.Sprintf("gang-%d-%d", round, lane)
		g.id = event.WorkloadID(w.Pool, name)
		seen.Submitted(string(g.id), g.workers+1, g.workers)
		if g.fault == nodeLost || g.fault == gangCancelled {
			seen.Harmed(string(g.id))
		}
		w.publish("user-queue", name, []byte(w.inLane(name, g)))
	}
	replace := []func(){func() { w.restarted(stack.QueueManager) }, func() { w.restarted(stack.Dispatcher) }}
	if round%4 > 1 {
		replace[0] = w.deposed
	}
	replace[round%2]()
	for _, g := range all {
		w.harm(g)
	}
	replace[1-round%2]()
	for _, g := range all {
		if g.fault != gangCancelled {
			w.until(fmt.Sprintf("gang %s of lane %d runs whole", g.id, g.lane), func() bool { return seen.Whole(string(g.id)) && w.allRun(g) })
		}
		w.cancel(g.id)
	}
	for _, g := range all {
		w.released(g.id)
		seen.Ended(string(g.id))
		w.lanePool("set", g.lane, "--stock", "-1", "--min", "0", "--fail", "0")
	}
	w.until("the nodes of the round are gone and known to be", func() bool {
		for _, n := range w.knownNodes() {
			if n.Labels["lane"] != "" {
				return false
			}
		}
		return len(w.laneNodes(-1)) == 0
	})
}

// inLane is a gang whose workers go to nodes of its lane, and its head to the node that stays.
func (w *world) inLane(name string, g *laned) string {
	manifest := stack.WorkerTemplate(stack.RayCluster(name, g.workers, 1), func(template map[string]any) {
		template["spec"].(map[string]any)["nodeSelector"] = map[string]any{"lane": strconv.Itoa(g.lane)}
	})
	return strings.Replace(manifest, `"containers"`, fmt.Sprintf(`"nodeSelector":{%q:%q},"containers"`, corev1.LabelHostname, w.NodeName("cpu", 0)), 1) // of the head
}

// deposed ends the sessions of queue-manager in Postgres, as those of a process that is killed: its
// term is over, and it hands nothing over to the next one, for which deposed waits.
func (w *world) deposed() {
	w.t.Helper()
	before := w.epoch()
	conn, err := pgx.Connect(w.ctx, w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.ctx) }()
	ended, err := conn.Exec(w.ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if err != nil || ended.RowsAffected() == 0 {
		w.t.Fatalf("%d sessions in Postgres were ended: %v", ended.RowsAffected(), err)
	}
	w.until("the next term answers", func() bool {
		_, err := w.Queries.Nodes(w.ctx)
		return err == nil && w.epoch() > before
	})
}

// epoch is that of the last leader; 0 while it is not known.
func (w *world) epoch() int64 {
	w.t.Helper()
	answer, err := w.Queries.Status(w.ctx)
	if err != nil || answer.Leader == nil {
		return 0
	}
	return answer.Leader.Epoch
}

func (w *world) restarted(service string) {
	w.t.Helper()
	if err := w.StopService(service); err != nil {
		w.t.Fatal(err)
	}
	if err := w.StartService(w.ctx, service); err != nil {
		w.t.Fatal(err)
	}
}

// harm does what goes wrong with a gang once it has asked.
func (w *world) harm(g *laned) {
	w.t.Helper()
	switch g.fault {
	case stockPartial, gangCancelled:
		w.until("the request lacks a node", func() bool {
			for _, request := range w.requests() {
				if request.GetLabels()["muster.dev/workload"] == string(g.id) && strings.Contains(fmt.Sprint(request.Object["status"]), fmt.Sprintf("needs %d", g.workers)) {
					return true
				}
			}
			return false
		})
		if g.fault == stockPartial {
			w.lanePool("set", g.lane, "--stock", "9")
		}
	case nodeLost:
		var nodes []string
		w.until("the nodes of the request are there", func() bool {
			nodes = w.laneNodes(g.lane)
			return len(nodes) == g.workers
		})
		if err := w.Node(w.ctx, "remove", nodes[0]); err != nil {
			w.t.Fatal(err)
		}
		w.lanePool("set", g.lane, "--min", strconv.Itoa(g.workers)) // one comes for it, and for no request
	}
}

// laneNodes names the nodes of a lane, or of all for a negative one.
func (w *world) laneNodes(lane int) (names []string) {
	w.t.Helper()
	selector := "lane,test.muster.dev/pool=" + w.Pool
	if lane >= 0 {
		selector = "lane=" + strconv.Itoa(lane) + ",test.muster.dev/pool=" + w.Pool
	}
	list, err := w.Kube.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names
}

// allRun reports whether all pods of the gang run, each of its workers on a node of its own.
func (w *world) allRun(g *laned) bool {
	w.t.Helper()
	running, on := 0, map[string]bool{}
	for _, pod := range w.pods(g.id) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			running++
			on[pod.Spec.NodeName] = true
		}
	}
	return running == g.workers+1 && len(on) == g.workers+1
}
