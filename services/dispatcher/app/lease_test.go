package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/lease"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/dispatcher/app"
)

// childVariable makes the test binary a dispatcher, with the settings that it
// holds: a process can be stopped, a goroutine cannot.
const childVariable = "MUSTER_TEST_DISPATCHER"

// leaseDuration is short, so that take-overs do not take the tests' time.
const leaseDuration = 3 * time.Second

// runChild is the dispatcher in a process of its own; it says on standard output
// that it is ready.
func runChild(settings string) int {
	config := &app.Config{}
	if err := json.Unmarshal([]byte(settings), config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := config.Validate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	rt := service.NewRuntime(zap.NewNop(), "dispatcher")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		if rt.Health.WaitReady(ctx) == nil {
			fmt.Println("ready")
		}
	}()
	fmt.Fprintln(os.Stderr, app.Run(ctx, config, rt))
	return 1
}

func (w *world) config(d *desk) *app.Config {
	return &app.Config{
		NATSURL: d.url, Cluster: clusterName, Kubeconfig: w.kubeconfig, SweepEvery: 100 * time.Millisecond,
		Lease: lease.Config{Lease: rbac.Namespace + "/dispatcher-" + w.namespace, Duration: leaseDuration},
	}
}

// process is a dispatcher in a process of its own.
type process struct{ *exec.Cmd }

// spawn starts a process and returns when it is ready, to act or to stand by.
func (w *world) spawn(config *app.Config) process {
	w.t.Helper()
	settings, err := json.Marshal(config)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(settings))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := make([]byte, len("ready"))
	if _, err := out.Read(line); err != nil || string(line) != "ready" {
		w.t.Fatalf("the process says %q, %v", line, err)
	}
	return process{cmd}
}

func (w *world) signal(p process, s syscall.Signal) {
	w.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// epoch is that of the lease, and who holds it.
func (w *world) epoch() (int64, string) {
	w.t.Helper()
	held, err := w.core.CoordinationV1().Leases(rbac.Namespace).Get(w.t.Context(), "dispatcher-"+w.namespace, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	epoch, _ := strconv.ParseInt(held.Annotations[lease.EpochKey], 10, 64)
	if held.Spec.HolderIdentity == nil {
		return epoch, ""
	}
	return epoch, *held.Spec.HolderIdentity
}

// takenAfter waits for a later epoch.
func (w *world) takenAfter(epoch int64) (later int64) {
	w.t.Helper()
	w.await("a later epoch", func() bool {
		later, _ = w.epoch()
		return later > epoch
	})
	return later
}

// creations counts the RayClusters that come into being in the namespace, by name.
type creations struct {
	mu   sync.Mutex
	seen map[string]map[string]bool // UIDs
}

func (w *world) countCreations() *creations {
	w.t.Helper()
	c := &creations{seen: map[string]map[string]bool{}}
	watch, err := w.objects.Resource(resource("RayCluster")).Namespace(w.namespace).Watch(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(watch.Stop)
	go func() {
		for change := range watch.ResultChan() {
			if object, ok := change.Object.(*unstructured.Unstructured); ok {
				c.mu.Lock()
				if c.seen[object.GetName()] == nil {
					c.seen[object.GetName()] = map[string]bool{}
				}
				c.seen[object.GetName()][string(object.GetUID())] = true
				c.mu.Unlock()
			}
		}
	}()
	return c
}

func (c *creations) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen[name])
}

// TestPausedDispatcherWakes: it was stopped with a command on its way to it; its
// successor has obeyed that and the next ones; then it wakes, and may do nothing.
func TestPausedDispatcherWakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "paused", 1)
	d := newDesk(t)
	created := w.countCreations()
	first := w.spawn(w.config(d))
	early := w.gang("early", "early", nil)
	d.command(early)
	before := d.awaitCreated("early").Session
	second := w.spawn(w.config(d))

	w.signal(first, syscall.SIGSTOP)
	late := w.gang("late", "late", nil)
	d.command(late) // the stopped one has it in its socket
	after := d.awaitCreated("late").Session
	if after <= before {
		t.Errorf("the successor reports in session %d, which is not after %d", after, before)
	}
	d.absent(late)
	d.awaitReleased("late")
	w.signal(first, syscall.SIGCONT)

	// Another workload, and another leader, show that time has gone by in which the
	// old one could have done harm.
	epoch, holder := w.epoch()
	d.command(w.gang("next", "next", nil))
	d.awaitCreated("next")
	w.signal(second, syscall.SIGKILL)
	w.takenAfter(epoch) // by the one that was paused
	last := w.gang("last", "last", nil)
	d.command(last)
	d.awaitCreated("last")
	w.await("the last creation is counted, and so all before it", func() bool { return created.of("last") > 0 })
	for name, want := range map[string]int{"early": 1, "late": 1, "next": 1, "last": 1} {
		if got := created.of(name); got != want {
			t.Errorf("%s came into being %d times", name, got)
		}
	}
	if _, now := w.epoch(); now == holder {
		t.Errorf("%s holds the lease although it was killed", now)
	}
}

// TestTwoDispatchersAtOnce: one acts, whoever comes first; when it ends in order
// the other one follows at once.
func TestTwoDispatchersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "two", 1)
	d := newDesk(t)
	created := w.countCreations()
	config := w.config(d)
	config.Lease.Duration = time.Minute // nobody may wait for its end
	stops := []func(){}
	var mu sync.Mutex
	var starting sync.WaitGroup
	for range 2 {
		starting.Go(func() {
			own := *config // each completes its own
			stop := w.runWith(&own)
			mu.Lock()
			defer mu.Unlock()
			stops = append(stops, stop)
		})
	}
	starting.Wait()
	sessions := map[int64]bool{}
	for i := range 10 {
		id := fmt.Sprintf("gang-%d", i)
		d.command(w.gang(workload.ID(id), id, nil))
		sessions[d.awaitCreated(workload.ID(id)).Session] = true
	}
	if len(sessions) != 1 {
		t.Errorf("%d sessions have reported: %v", len(sessions), sessions)
	}
	epoch, _ := w.epoch()
	for _, stop := range stops[:1] {
		stop()
	}
	d.command(w.gang("after", "after", nil))
	d.awaitCreated("after")
	if later, _ := w.epoch(); later < epoch {
		t.Errorf("epoch %d after %d", later, epoch)
	}
	w.await("the last creation is counted, and so all before it", func() bool { return created.of("after") > 0 })
	for i := range 10 {
		if name := fmt.Sprintf("gang-%d", i); created.of(name) != 1 {
			t.Errorf("%s came into being %d times", name, created.of(name))
		}
	}
}

// holdingProxy is an API server whose answers to creations are withheld: the
// request itself waits until it is let go.
type holdingProxy struct {
	server  *httptest.Server
	arrived chan struct{}
	letGo   chan struct{}
}

func (w *world) holdCreations(kubeconfig string) (*holdingProxy, string) {
	w.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		w.t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &holdingProxy{arrived: make(chan struct{}, 1), letGo: make(chan struct{})}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/rayclusters") {
			select {
			case p.arrived <- struct{}{}:
			default:
			}
			<-p.letGo
			// The client has given up; the request is on the wire all the same.
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		forward.ServeHTTP(out, r)
	}))
	w.t.Cleanup(p.server.Close)
	through := clientcmdapi.NewConfig()
	through.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL}
	through.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	through.CurrentContext = "proxy"
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*through, file); err != nil {
		w.t.Fatal(err)
	}
	return p, file
}

// TestLeaseLostInTheMiddleOfACreation: the creation is on its way when the lease
// is lost, and arrives when its workload has been cancelled and forgotten. What
// comes into being is removed, and none of its pods starts.
func TestLeaseLostInTheMiddleOfACreation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "middle", 1)
	d := newDesk(t)
	proxy, kubeconfig := w.holdCreations(w.kubeconfig)
	config := w.config(d)
	config.Kubeconfig = kubeconfig
	first := w.spawn(config)
	gang := w.gang("gang", "gang", nil)
	d.command(gang)
	select {
	case <-proxy.arrived:
	case <-time.After(patience):
		t.Fatal("nothing is created")
	}
	epoch, _ := w.epoch()
	w.signal(first, syscall.SIGSTOP) // so it loses the lease
	w.spawn(w.config(d))
	w.takenAfter(epoch)
	d.absent(gang)
	d.awaitReleased("gang")
	forgotten := gang
	forgotten.State, forgotten.PodSets, forgotten.Placements, forgotten.Manifest = event.Forgotten, nil, nil, nil
	d.command(forgotten)
	forgot := func(_ context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		if r.ID == gang.Workload {
			return query.WorkloadsAnswer{}, nil
		}
		// Objects of other tests' namespaces are seen, too, and are live.
		return query.WorkloadsAnswer{Workloads: []workload.Record{{Holding: true}}}, nil
	}
	if err := query.Handle(t.Context(), d.bus.Conn(), query.WorkloadsSubject, forgot); err != nil { // as queue-manager
		t.Fatal(err)
	}

	created := w.countCreations()
	close(proxy.letGo)
	w.signal(first, syscall.SIGCONT)
	w.await("the late creation arrives", func() bool { return created.of("gang") == 1 })
	w.await("it is removed", func() bool {
		list, err := w.objects.Resource(resource("RayCluster")).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	pods, err := w.core.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" {
			t.Errorf("pod %s was started on %s", pod.Name, pod.Spec.NodeName)
		}
	}
}
