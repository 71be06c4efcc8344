package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/testkit/clienttest"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/muster-dev/internal/cli"
	"muster.dev/muster/services/muster/examples"
)

// findDevcluster sets the environment so that commands find the binary.
func findDevcluster(t *testing.T) {
	t.Helper()
	if os.Getenv(devcluster.EnvBinary) == "" {
		t.Setenv(devcluster.EnvBinary, filepath.Join("..", "..", "..", "..", "bin", "devcluster"))
	}
	if _, err := devcluster.Find(""); err != nil {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("MUSTER_NATS_URL", "")
	t.Setenv("MUSTER_DEV_FILE", filepath.Join(t.TempDir(), "dev.json"))
}

// serverDir is for directories of servers, which other users must be able to
// enter when we are root.
func serverDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "muster-cli-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startDev runs `muster-dev up` until the returned function is called, which
// returns its exit code and what it printed last.
func startDev(t *testing.T, args ...string) (stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	reader, writer := io.Pipe()
	var errOut bytes.Buffer
	exited := make(chan int, 1)
	go func() {
		code := cli.Run(ctx, append([]string{"up", "--nats-port", "-1", "--http-port", "-1", "--console-port", "-1"}, args...), strings.NewReader(""), writer, &errOut)
		_ = writer.Close()
		exited <- code
	}()
	lines := bufio.NewScanner(reader)
	ready := false
	for !ready && lines.Scan() {
		ready = strings.Contains(lines.Text(), "Ctrl-C ends all of it.")
	}
	stop = func() (int, string) {
		cancel()
		last := ""
		for lines.Scan() {
			last = lines.Text()
		}
		return <-exited, last
	}
	if !ready {
		code, _ := stop()
		t.Fatalf("muster-dev ended with exit code %d: %s", code, errOut.String())
	}
	return stop
}

func example(t *testing.T, name string) string {
	t.Helper()
	content, err := examples.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// client is a program, because this package does not import its command line.
type client struct{ path string }

// want runs a command of the client and checks its exit code and what it says.
func (c client) want(t *testing.T, code int, want string, in string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), c.path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errOut
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("run the client: %v", err)
	}
	got := result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
	got.check(t, code, want, "muster", args)
	return got
}

func TestCommandsOnAStack(t *testing.T) {
	findDevcluster(t)
	muster := client{clienttest.Program(t)}
	dir := serverDir(t)
	stop := startDev(t, "--fleet", "p3", "--dir", dir)
	stopped := false
	defer func() {
		if !stopped {
			stop()
		}
	}()
	glue := example(t, examples.Glue)
	second := strings.Replace(glue, "name: raycluster-glue", "name: raycluster-glue-1", 1)

	t.Run("a second stack is refused", func(t *testing.T) {
		run(t, "", "up").check(t, exit.Failure, "another `muster-dev up` is running", "muster-dev", []string{"up"})
	})
	t.Run("a second Muster keeps off the cluster", func(t *testing.T) {
		muster.want(t, exit.OK, "running", example(t, examples.HelloJob), "submit", "-f", "-", "--wait=running", "--timeout=60s")
		demo := []string{"demo", "--kubeconfig", running(t).Kubeconfig, "--dir", dir}
		run(t, "", demo...).check(t, exit.Failure, "workloads of another Muster", "muster-dev", demo)
	})
	t.Run("a gang that fits", func(t *testing.T) {
		got := muster.want(t, exit.OK, "raycluster/raycluster-glue running", glue, "submit", "-f", "-", "--wait=running", "--timeout=60s")
		for _, line := range []string{"raycluster/raycluster-glue submitted (workload ", "raycluster/raycluster-glue admitted to cluster local: headgroup on p3-"} {
			if !strings.Contains(got.out, line) {
				t.Errorf("the progress lacks %q: %s", line, got.out)
			}
		}
	})
	t.Run("one that does not fit", func(t *testing.T) {
		muster.want(t, exit.Timeout, "nvidia.com/gpu", second, "submit", "-f", "-", "--wait=admitted", "--timeout=1s", "--id=second")
		muster.want(t, exit.OK, "Free on the best node:  1", "", "describe", "workload", "raycluster-glue-1")
		muster.want(t, exit.OK, "raycluster-glue-1", "", "get", "wl", "--phase=queued")
	})
	t.Run("over HTTP", func(t *testing.T) {
		stack := running(t)
		t.Setenv("MUSTER_SERVER", stack.HTTPURL)
		muster.want(t, exit.OK, "p3-2gpu-0", "", "get", "nodes", "--token-file", stack.TokenFile)
		muster.want(t, exit.Failure, "unknown caller", "", "get", "nodes")
	})
	t.Run("the same submission again", func(t *testing.T) {
		muster.want(t, exit.OK, "submitted before", second, "submit", "-f", "-", "--id=second")
		muster.want(t, exit.Rejected, "Duplicate", glue, "submit", "-f", "-", "--id=second")
	})
	t.Run("rejections", func(t *testing.T) {
		muster.want(t, exit.Rejected, `queue "nowhere" does not exist`, glue, "submit", "-f", "-", "--queue=nowhere")
		muster.want(t, exit.Rejected, `priority class "urgnt" does not exist; there are none`,
			strings.Replace(glue, "name: raycluster-glue", "name: raycluster-glue-2", 1), "submit", "-f", "-", "--priority-class=urgnt")
		muster.want(t, exit.Rejected, "Invalid", "kind: Pod\nmetadata: {name: a}\n", "submit", "-f", "-")
		muster.want(t, exit.Rejected, "Invalid", "\t{{{", "submit", "-f", "-")
		muster.want(t, exit.Rejected, "524288", second+"# "+strings.Repeat("x", 600<<10), "submit", "-f", "-")
		muster.want(t, exit.Rejected, "Queue", strings.Replace(second, "glue-1", "glue-2", 1), "submit", "-f", "-", "--namespace=kube-system")
		got := muster.want(t, exit.Rejected, "", "kind: Pod\n---\nkind: Service\n", "submit", "-f", "-")
		if strings.Count(got.errOut, "rejected") != 2 {
			t.Errorf("two rejections are printed as: %s", got.errOut)
		}
	})
	t.Run("lists", func(t *testing.T) {
		muster.want(t, exit.OK, "default", "", "get", "queues", "-o", "wide")
		muster.want(t, exit.OK, "raycluster-glue ", "", "describe", "queue", "default")
		muster.want(t, exit.OK, "small-group", "", "describe", "node", "p3-2gpu-0")
		muster.want(t, exit.NotFound, `no workload "unknown"`, "", "describe", "workload", "unknown")
		muster.want(t, exit.NotFound, `no queue "unknown"`, "", "get", "queues", "unknown")
		muster.want(t, exit.NotFound, `no node "unknown"`, "", "describe", "node", "unknown")
		var nodes struct {
			Nodes []struct{ Free map[string]string }
		}
		if err := json.Unmarshal([]byte(muster.want(t, exit.OK, "", "", "get", "nodes", "-o", "json").out), &nodes); err != nil || len(nodes.Nodes) != 4 {
			t.Errorf("nodes as JSON: %d, %v, want 4 with quantities", len(nodes.Nodes), err)
		}
	})
	t.Run("queues are configured while it runs", func(t *testing.T) {
		manifests := example(t, examples.KueueResources)
		got := muster.want(t, exit.OK, "clusterqueue.kueue.x-k8s.io/cluster-queue created (dry run)", manifests, "apply", "-f", "-", "--dry-run")
		if strings.Contains(got.errOut, "Warning") {
			t.Errorf("the guide's manifests are warned of: %s", got.errOut)
		}
		const other = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n"
		got = muster.want(t, exit.OK, "localqueue.kueue.x-k8s.io/user-queue of namespace default created (dry run): would be active", other+"---\n"+manifests, "apply", "-f", "-", "--dry-run")
		if !strings.Contains(got.errOut, "skipped Namespace team-a: not a queue object") {
			t.Errorf("a Namespace in the file: %s", got.errOut)
		}
		muster.want(t, exit.Rejected, `Namespace "team-a": apiVersion: "v1": want kueue.x-k8s.io`, other, "apply", "-f", "-")
		const checked = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: choosy}\nspec: {cohort: nobody, admissionChecks: [nope]}\n"
		got = muster.want(t, exit.OK, "clusterqueue.kueue.x-k8s.io/choosy created (dry run): would not be active", checked, "apply", "-f", "-", "--dry-run")
		for _, warning := range []string{`Warning: clusterQueue "choosy" is inactive: AdmissionCheck "nope" does not exist`, `Warning: clusterQueue "choosy": cohortName "nobody": no cohort of that name`} {
			if !strings.Contains(got.errOut, warning) {
				t.Errorf("warnings are %q, want %q", got.errOut, warning)
			}
		}
		muster.want(t, exit.NotFound, "", "", "get", "queues", "user-queue")
		muster.want(t, exit.OK, "localqueue.kueue.x-k8s.io/user-queue of namespace default created\n", manifests, "apply", "-f", "-")
		muster.want(t, exit.OK, "resourceflavor.kueue.x-k8s.io/default-flavor unchanged", manifests, "apply", "-f", "-")
		muster.want(t, exit.OK, "cluster-queue", "", "describe", "queue", "user-queue")
		muster.want(t, exit.OK, "10000Gi", "", "describe", "queue", "user-queue")
		muster.want(t, exit.OK, "ProvisioningRequestConfig", "", "get", "applied")
		muster.want(t, exit.Timeout, `queued: Provisioning: nodes for 1 of small-group pods are asked for in cluster local (AdmissionCheck "rayjob-gpu")`, strings.Replace(second, "glue-1", "glue-4", 1), "submit", "-f", "-", "--queue=user-queue", "--wait=admitted", "--timeout=1s")
		muster.want(t, exit.OK, "raycluster-glue-4", "", "get", "wl", "--queue=user-queue")
		muster.want(t, exit.Rejected, `queue "user-queue" of namespace "default" has 1 workloads that have not ended`, "", "delete", "localqueue", "user-queue")
		muster.want(t, exit.Rejected, `ClusterQueue "cluster-queue": spec.colour: there is no such field`, strings.Replace(manifests, "spec:\n  namespaceSelector", "spec:\n  colour: red\n  namespaceSelector", 1), "apply", "-f", "-")
		muster.want(t, exit.OK, "cancelled", "", "cancel", "raycluster-glue-4", "--wait", "--timeout=60s")
		muster.want(t, exit.OK, "clusterqueue.kueue.x-k8s.io/cluster-queue deleted", manifests, "delete", "-f", "-")
		muster.want(t, exit.NotFound, "", "", "get", "queues", "user-queue")
	})
	t.Run("cancelling starts the next", func(t *testing.T) {
		muster.want(t, exit.OK, "cancelled", "", "cancel", "raycluster-glue", "--wait", "--timeout=60s", "--why=its turn is over")
		muster.want(t, exit.OK, "has ended already: cancelled", "", "cancel", "raycluster-glue")
		muster.want(t, exit.OK, "running", second, "submit", "-f", "-", "--id=second", "--wait=running", "--timeout=60s")
		var d struct{ History []json.RawMessage }
		out := muster.want(t, exit.OK, "its turn is over", "", "describe", "workload", "raycluster-glue", "-o", "json")
		if err := json.Unmarshal([]byte(out.out), &d); err != nil || len(d.History) < 4 {
			t.Errorf("the life of raycluster-glue has %d entries (%v): %s", len(d.History), err, out.out)
		}
	})
	t.Run("a job to its end", func(t *testing.T) {
		muster.want(t, exit.OK, "succeeded", example(t, examples.HelloJob), "submit", "-f", "-", "--wait=finished", "--timeout=90s")
	})
	t.Run("an operator holds a queue", func(t *testing.T) {
		muster.want(t, exit.OK, "Nothing needs attention", "", "status")
		muster.want(t, exit.OK, "queue default is held: ", "", "hold", "queue", "default", "--by=ann", "--why=new driver")
		muster.want(t, exit.OK, "unchanged: queue \"default\" is held since ", "", "hold", "queue", "default")
		held := example(t, examples.HelloJob)
		muster.want(t, exit.Timeout, "by ann: new driver", held, "submit", "-f", "-", "--wait=admitted", "--timeout=1s", "--id=held")
		muster.want(t, exit.OK, "by ann", "", "get", "queues")
		muster.want(t, exit.OK, "by ann: new driver", "", "status")
		muster.want(t, exit.OK, "queue default is resumed", "", "resume", "queue", "default")
		muster.want(t, exit.OK, "succeeded", held, "submit", "-f", "-", "--id=held", "--wait=finished", "--timeout=90s")
		muster.want(t, exit.OK, "unchanged: no operator holds queue default", "", "resume", "queue", "default")
		muster.want(t, exit.NotFound, `no queue "unknown"`, "", "hold", "queue", "unknown")
	})
	t.Run("events", func(t *testing.T) {
		got := muster.want(t, exit.OK, "raycluster/raycluster-glue", "", "events", "--workload", "raycluster-glue")
		if strings.Contains(got.out, "raycluster-glue-1") {
			t.Errorf("events of one workload have another's: %s", got.out)
		}
		for line := range strings.Lines(muster.want(t, exit.OK, "dev.muster.workload.rejected.v1", "", "events", "-o", "json").out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("an event is no line of JSON: %s", line)
			}
		}
	})

	stack := running(t)
	code, last := stop()
	stopped = true
	if code != exit.OK || !strings.Contains(last, "nothing is left") {
		t.Errorf("muster-dev ended with exit code %d and %q", code, last)
	}
	nothingLeft(t, dir, stack)
}

// note is what the running stack tells of itself.
type note struct{ NATSURL, Kubeconfig, HTTPURL, TokenFile string }

func running(t *testing.T) note {
	t.Helper()
	content, err := os.ReadFile(os.Getenv("MUSTER_DEV_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	var n note
	if err := json.Unmarshal(content, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func nothingLeft(t *testing.T, dir string, n note) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
	for _, file := range []string{n.Kubeconfig, os.Getenv("MUSTER_DEV_FILE")} {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q is left: %v", file, err)
		}
	}
	address, err := url.Parse(n.NATSURL)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := net.DialTimeout("tcp", address.Host, time.Second); err == nil {
		_ = conn.Close()
		t.Errorf("a process still listens on %s", n.NATSURL)
	}
}

func TestDemo(t *testing.T) { demonstrate(t) }

func TestDemoProvisioning(t *testing.T) { demonstrate(t, "--provisioning") }

func demonstrate(t *testing.T, flags ...string) {
	t.Helper()
	findDevcluster(t)
	dir := serverDir(t)
	got := run(t, "", append([]string{"demo", "--dir", dir}, flags...)...)
	if got.code != exit.OK || !strings.Contains(got.out, " 0 failed, 0 skipped") {
		t.Errorf("exit code %d\n%s\n%s", got.code, got.out, got.errOut)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
}
