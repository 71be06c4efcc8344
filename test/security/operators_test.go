package security

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/pkg/testkit/clienttest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// waits waits until the workload has been queued for that reason.
func (w *tenants) waits(id workload.ID, kind workload.ReasonKind) *workload.Reason {
	w.t.Helper()
	return bustest.Await(w.heard, patience, string(id)+" "+string(kind), func(e *event.WorkloadChanged) bool {
		return e.ID == id && e.Phase == workload.Queued && e.Reason != nil && e.Reason.Kind == kind
	}, nil).Reason
}

// What tells of others, or holds what others wait for, is for operators over HTTP; a tenant
// is refused, and moves only its own workloads between queues that it may submit to.
func TestOperatorsSeeAndChangeOthersOverHTTP(t *testing.T) {
	t.Parallel()
	mine, theirs := ownQueue("mine", "bob"), ownQueue("theirs", "alice")
	both := queuemanager.Queue{Name: "both", Namespaces: mine.Namespaces, Submitters: []workload.Submitters{{Who: []string{"http/bob"}}}}
	c := newCallers(t, []queuemanager.Queue{mine, theirs, both}, "alice", "bob", "olga")
	if err := c.AddNodes(t.Context(), "gpu", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=1"); err != nil {
		t.Fatal(err)
	}
	running := c.submitAs("alice", "theirs", stack.RayCluster("running", 1, 1))
	c.reaches(running, workload.Admitted)
	for _, each := range []struct{ method, path, want string }{
		{http.MethodGet, "/v1/nodes", `"allocatable"`},
		{http.MethodGet, "/v1/status", `"leader"`},
		{http.MethodGet, "/v1/clusters", `"readyNodes":1`},
		{http.MethodPut, "/v1/queues/mine/hold?why=driver", `"by":"http/olga"`},
	} {
		t.Run(each.method+" "+each.path, func(t *testing.T) {
			tenants := *c.tenants
			tenants.t = t
			c := &callers{tenants: &tenants, url: c.url}
			if status, answer := c.ask("bob", each.method, each.path, ""); status != http.StatusForbidden || !strings.Contains(answer, "no operator") {
				t.Errorf("a tenant asks: status %d: %s", status, answer)
			}
			if status, answer := c.ask("olga", each.method, each.path, ""); status != http.StatusOK || !strings.Contains(answer, each.want) {
				t.Errorf("an operator asks: status %d: %s", status, answer)
			}
		})
	}
	held := c.submitAs("bob", "mine", stack.RayCluster("held", 1, 1))
	if why := c.waits(held, workload.ReasonHeld); !strings.Contains(why.Message, "by http/olga: driver") {
		t.Errorf("it waits because %q", why.Message)
	}
	if status, answer := c.ask("bob", http.MethodPost, "/v1/workloads/"+string(held)+"/move?queue=theirs", ""); status != http.StatusNotFound {
		t.Errorf("a tenant moves into another's queue: status %d: %s", status, answer)
	}
	if status, answer := c.ask("alice", http.MethodPost, "/v1/workloads/"+string(held)+"/move?queue=both", ""); status != http.StatusNotFound {
		t.Errorf("a tenant moves another's workload: status %d: %s", status, answer)
	}
	if status, answer := c.ask("bob", http.MethodPost, "/v1/workloads/"+string(held)+"/move?queue=both&why=held", ""); status != http.StatusAccepted {
		t.Errorf("a tenant moves its own: status %d: %s", status, answer)
	}
	c.waits(held, workload.ReasonFit)
	if status, answer := c.ask("olga", http.MethodGet, "/v1/workloads", ""); status != http.StatusOK || !strings.Contains(answer, string(held)) || !strings.Contains(answer, string(running)) {
		t.Errorf("an operator lists: status %d: %s", status, answer)
	}
	if status, answer := c.ask("olga", http.MethodDelete, "/v1/queues/mine/hold", ""); status != http.StatusOK || strings.Contains(answer, `"hold"`) {
		t.Errorf("an operator resumes: status %d: %s", status, answer)
	}
	if status, answer := c.ask("olga", http.MethodDelete, "/v1/workloads/"+string(running), ""); status != http.StatusAccepted {
		t.Errorf("an operator cancels: status %d: %s", status, answer)
	}
	c.reaches(held, workload.Admitted)
}

// overNATS is who asks over NATS, with all rights.
const overNATS = "nats"

// The command line does over HTTP what it does over NATS, with the rights of its token.
func TestTheCommandLineAsksOverHTTP(t *testing.T) {
	t.Parallel()
	mine := ownQueue("mine", "bob")
	both := queuemanager.Queue{Name: "both", Namespaces: mine.Namespaces, Submitters: mine.Submitters}
	c := newCallers(t, []queuemanager.Queue{mine, both}, "bob", "olga")
	if err := c.AddNodes(t.Context(), "gpu", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=1"); err != nil {
		t.Fatal(err)
	}
	program := clienttest.Program(t)
	b, err := bus.Connect(t.Context(), bus.Options{URL: c.NATSURL, Name: "test", Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	unread := bus.Delivery{Subject: event.SubmitSubject("mine"), Data: []byte("password=letmein!!")}
	if err := b.StoreDeadLetter(t.Context(), unread, "nothing to be read"); err != nil {
		t.Fatal(err)
	}
	labelled := strings.Replace(stack.RayCluster("huge", 1, 100), `"name":"huge"`, `"labels":{"team":"vision"},"name":"huge"`, 1)
	for _, step := range []struct {
		who, input, command string
		code                int
		want                string
	}{
		{"bob", stack.RayCluster("first", 1, 1), "submit -f - --queue mine", 0, "submitted (workload "},
		{"olga", "", "hold queue mine --why driver", 0, "queue mine is held"},
		{"bob", stack.RayCluster("second", 1, 1), "submit -f - --queue mine", 0, "by http/olga: driver"},
		{"bob", "", "get workloads", 0, "second"},
		{"bob", "", "describe workload second", 0, "Held: queue"},
		{"bob", "", "explain second", 0, "Held: queue"},
		{"bob", "", "hold queue both", 4, "is no operator"},
		{"bob", "", "get nodes", 1, "is no operator"},
		{"bob", "", "move second --queue both", 0, "is in queue both now"},
		{"bob", "", "get queues", 0, "both"},
		{"bob", "", "hold workload second --why data", 0, "second held by a submitter: http/bob, since "},
		{"bob", "", "hold workload second", 0, "unchanged: raycluster/second held by a submitter"},
		{"olga", "", "hold workload second --why inspection", 0, "unchanged: raycluster/second held by a submitter"},
		{"bob", "", "resume workload second", 0, "second is not held"},
		{"olga", "", "hold workload second --why inspection", 0, "second held by an operator: http/olga"},
		{"bob", "", "explain second", 0, "held by an operator: http/olga"},
		{"bob", "", "resume workload second", 4, "only an operator can resume it"},
		{"olga", "", "resume workload second", 0, "second is not held"},
		{"bob", "", "priority second 7", 4, "is no operator"},
		{"olga", "", "priority second 7 --why Friday", 0, "second has the priority 7"},
		{"bob", "", "hold workload first", 4, "only a waiting workload can be held"},
		{"bob", "", "requeue second", 4, "only one that was admitted"},
		{"bob", labelled, "submit -f - --queue both", 0, "submitted (workload "},
		{overNATS, "", "hold workload huge --by ann --why size", 0, "huge held by an operator: ann, since "},
		{overNATS, "", "priority huge 7 --by ann", 0, "huge has the priority 7"},
		{overNATS, "", "requeue huge", 4, "not requeued: it is queued"},
		{overNATS, "", "describe workload huge", 0, "ann set its priority to 7, from 0"},
		{overNATS, "", "resume workload huge --by ann", 0, "huge is not held"},
		{overNATS, "", "hold workload first", 4, "only a waiting workload can be held; `muster requeue`"},
		{overNATS, "", "get workloads -l !team -n nowhere", 0, "No workloads found in namespace nowhere."},
		{"bob", "", "get workloads -l team=vision", 0, "huge"},
		{overNATS, "", "cancel -l team=vision --phase running", 3, "there is no such workload"},
		{overNATS, "", "get workloads -l team=vision,stage!=test -o name", 0, "huge"},
		{"olga", "", "get nodes", 0, "gpu"},
		{"olga", "", "status", 0, "Leader"},
		{"olga", "", "resume queue mine", 0, "queue mine is resumed"},
		{"bob", "", "move second --queue elsewhere", 3, "there is no queue"},
		{"bob", stack.RayCluster("third", 1, 0), "submit -f - --queue both --wait=running --timeout=2m", 0, "third running"},
		{"bob", "", "requeue third --why again", 0, "third is being requeued: attempt 1 is taken down"},
		{"bob", "", "cancel third --wait --timeout=1m", 0, "third cancelled"},
		{"bob", "", "events --follow --workload third", 0, "cancelled"},
		{"bob", "", "events --since 1h --workload third", 0, "requeue"},
		{"bob", "", "events --since 1h --queue both", 0, "raycluster/third"},
		{overNATS, "", "requeue third", 4, "it has ended: it is cancelled"},
		{"bob", "", "release first --force --why away", 1, "is no operator"},
		{"olga", "", "release first --force --why away", 0, "first failed: Released: http/olga"},
		{"bob", "", "get workloads -l !team,ray.io/priority-class!=a", 0, "second"},
		{"bob", "", "get workloads -l team=none", 0, "No workloads found."},
		{"bob", "", "get queues -n nowhere", 0, "No queues found in namespace nowhere."},
		{"bob", "", "cancel -l team=none", 3, "there is no such workload"},
		{"bob", "", "cancel -l !team --phase queued", 0, "second is being cancelled"},
		{"bob", "", "get applied", 1, "is no operator"},
		{"olga", "", "get applied", 0, "No applied objects found."},
		{"olga", "", "whatif --move second=nowhere", 1, "does not wait"},
		{"olga", "", "whatif --move second=nowhere", 1, "does not wait"},
		{"bob", "", "events", 2, "--since 1h for the past or --follow"},
		{"bob", "", "events --since 1h", 0, "raycluster/third"},
		{"bob", "", "events --since 1h --queue both --workload third", 2, "or neither"},
		{"olga", "", "get dead-letters", 0, "nothing to be read"},
		{"olga", "", "get dead-letters -o json", 0, "\"bytes\": 18"},
		{"bob", "", "get dead-letters", 1, "is no operator"},
		{"stranger", "", "get workloads", 1, "unknown caller"},
	} {
		muster := exec.CommandContext(t.Context(), program, strings.Fields(step.command)...)
		muster.Env = []string{"MUSTER_SERVER=" + c.url, "MUSTER_TOKEN=" + step.who, "HOME=" + t.TempDir()}
		if step.who == overNATS {
			muster.Env = []string{"MUSTER_NATS_URL=" + c.NATSURL, "HOME=" + t.TempDir()}
		}
		muster.Stdin = strings.NewReader(step.input)
		output, _ := muster.CombinedOutput() // its exit code is compared
		if code := muster.ProcessState.ExitCode(); code != step.code || !strings.Contains(string(output), step.want) {
			t.Errorf("%s: muster %s: exit code %d, want %d and %q:\n%s", step.who, step.command, code, step.code, step.want, output)
		}
	}
}
