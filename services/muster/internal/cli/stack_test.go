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
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/localcluster"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/services/muster/examples"
	"muster.dev/muster/services/muster/internal/cli"
	"muster.dev/muster/services/muster/internal/output"
)

// findDevcluster sets the environment so that commands find the binary.
func findDevcluster(t *testing.T) {
	t.Helper()
	if os.Getenv(localcluster.EnvBinary) == "" {
		t.Setenv(localcluster.EnvBinary, filepath.Join("..", "..", "..", "..", "bin", "devcluster"))
	}
	if _, err := localcluster.Find(""); err != nil {
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

// startDev runs `muster dev` until the returned function is called, which
// returns its exit code and what it printed last.
func startDev(t *testing.T, args ...string) (stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	reader, writer := io.Pipe()
	var errOut bytes.Buffer
	exited := make(chan int, 1)
	go func() {
		code := cli.Run(ctx, append([]string{"dev", "--nats-port", "-1"}, args...), strings.NewReader(""), writer, &errOut)
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
		t.Fatalf("muster dev ended with exit code %d: %s", code, errOut.String())
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

// want runs a command and checks its exit code and what it says.
func want(t *testing.T, code int, says string, in string, args ...string) result {
	t.Helper()
	got := run(t, in, args...)
	if got.code != code || !strings.Contains(got.out+got.errOut, says) {
		t.Errorf("muster %s: exit code %d, want %d and %q\nstandard output: %s\nstandard error: %s",
			strings.Join(args, " "), got.code, code, says, got.out, got.errOut)
	}
	return got
}

func TestCommandsOnAStack(t *testing.T) {
	findDevcluster(t)
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
		want(t, cli.ExitFailure, "another `muster dev` is running", "", "dev")
	})
	t.Run("a second Muster keeps off the cluster", func(t *testing.T) {
		want(t, cli.ExitOK, "running", example(t, examples.HelloJob), "submit", "-f", "-", "--wait=running", "--timeout=60s")
		want(t, cli.ExitFailure, "workloads of another Muster", "", "demo", "--kubeconfig", running(t).Kubeconfig, "--dir", dir)
	})
	t.Run("a gang that fits", func(t *testing.T) {
		got := want(t, cli.ExitOK, "raycluster/raycluster-glue running", glue, "submit", "-f", "-", "--wait=running", "--timeout=60s")
		for _, line := range []string{"raycluster/raycluster-glue submitted (workload ", "raycluster/raycluster-glue admitted to cluster local: headgroup on p3-"} {
			if !strings.Contains(got.out, line) {
				t.Errorf("the progress lacks %q: %s", line, got.out)
			}
		}
	})
	t.Run("one that does not fit", func(t *testing.T) {
		want(t, cli.ExitTimeout, "nvidia.com/gpu", second, "submit", "-f", "-", "--wait=admitted", "--timeout=1s", "--id=second")
		want(t, cli.ExitOK, "Free on the best node:  1", "", "describe", "workload", "raycluster-glue-1")
		want(t, cli.ExitOK, "raycluster-glue-1", "", "get", "wl", "--phase=queued")
	})
	t.Run("the same submission again", func(t *testing.T) {
		want(t, cli.ExitOK, "submitted before", second, "submit", "-f", "-", "--id=second")
		want(t, cli.ExitRejected, "Duplicate", glue, "submit", "-f", "-", "--id=second")
	})
	t.Run("rejections", func(t *testing.T) {
		want(t, cli.ExitRejected, `queue "nowhere" does not exist`, glue, "submit", "-f", "-", "--queue=nowhere")
		want(t, cli.ExitRejected, `priority class "urgnt" does not exist; there are none`,
			strings.Replace(glue, "name: raycluster-glue", "name: raycluster-glue-2", 1), "submit", "-f", "-", "--priority-class=urgnt")
		want(t, cli.ExitRejected, "Invalid", "kind: Pod\nmetadata: {name: a}\n", "submit", "-f", "-")
		want(t, cli.ExitRejected, "Invalid", "\t{{{", "submit", "-f", "-")
		want(t, cli.ExitRejected, "524288", second+"# "+strings.Repeat("x", 600<<10), "submit", "-f", "-")
		want(t, cli.ExitRejected, "Queue", strings.Replace(second, "glue-1", "glue-2", 1), "submit", "-f", "-", "--namespace=kube-system")
		got := want(t, cli.ExitRejected, "", "kind: Pod\n---\nkind: Service\n", "submit", "-f", "-")
		if strings.Count(got.errOut, "rejected") != 2 {
			t.Errorf("two rejections are told as: %s", got.errOut)
		}
	})
	t.Run("lists", func(t *testing.T) {
		want(t, cli.ExitOK, "default", "", "get", "queues", "-o", "wide")
		want(t, cli.ExitOK, "raycluster-glue ", "", "describe", "queue", "default")
		want(t, cli.ExitOK, "small-group", "", "describe", "node", "p3-2gpu-0")
		want(t, cli.ExitNotFound, `no workload "nobody"`, "", "describe", "workload", "nobody")
		want(t, cli.ExitNotFound, `no queue "nobody"`, "", "get", "queues", "nobody")
		want(t, cli.ExitNotFound, `no node "nobody"`, "", "describe", "node", "nobody")
		var nodes query.NodesAnswer
		if err := json.Unmarshal([]byte(want(t, cli.ExitOK, "", "", "get", "nodes", "-o", "json").out), &nodes); err != nil || len(nodes.Nodes) != 4 {
			t.Errorf("nodes as JSON: %d, %v, want 4", len(nodes.Nodes), err)
		}
	})
	t.Run("queues are configured while it runs", func(t *testing.T) {
		manifests := example(t, examples.KueueResources)
		got := want(t, cli.ExitOK, "clusterqueue.kueue.x-k8s.io/cluster-queue created (dry run)", manifests, "apply", "-f", "-", "--dry-run")
		if !strings.Contains(got.errOut, `Warning: AdmissionCheck "rayjob-gpu" does nothing`) || !strings.Contains(got.errOut, "spec.admissionChecks does nothing") {
			t.Errorf("what does nothing is told as: %s", got.errOut)
		}
		want(t, cli.ExitNotFound, "", "", "get", "queues", "user-queue")
		want(t, cli.ExitOK, "localqueue.kueue.x-k8s.io/user-queue of namespace default created\n", manifests, "apply", "-f", "-")
		want(t, cli.ExitOK, "resourceflavor.kueue.x-k8s.io/default-flavor unchanged", manifests, "apply", "-f", "-")
		want(t, cli.ExitOK, "cluster-queue", "", "describe", "queue", "user-queue")
		want(t, cli.ExitOK, "10000Gi", "", "describe", "queue", "user-queue")
		want(t, cli.ExitOK, "ProvisioningRequestConfig", "", "get", "applied")
		want(t, cli.ExitTimeout, "nvidia.com/gpu", strings.Replace(second, "glue-1", "glue-4", 1), "submit", "-f", "-", "--queue=user-queue", "--wait=admitted", "--timeout=1s")
		want(t, cli.ExitOK, "raycluster-glue-4", "", "get", "wl", "--queue=user-queue")
		want(t, cli.ExitRejected, `queue "user-queue" of namespace "default" has 1 workloads that have not ended`, "", "delete", "localqueue", "user-queue")
		want(t, cli.ExitRejected, `ClusterQueue "cluster-queue": spec.colour: there is no such field`, strings.Replace(manifests, "spec:\n  namespaceSelector", "spec:\n  colour: red\n  namespaceSelector", 1), "apply", "-f", "-")
		want(t, cli.ExitOK, "cancelled", "", "cancel", "raycluster-glue-4", "--wait", "--timeout=60s")
		want(t, cli.ExitOK, "clusterqueue.kueue.x-k8s.io/cluster-queue deleted", manifests, "delete", "-f", "-")
		want(t, cli.ExitNotFound, "", "", "get", "queues", "user-queue")
	})
	t.Run("cancelling starts the next", func(t *testing.T) {
		want(t, cli.ExitOK, "cancelled", "", "cancel", "raycluster-glue", "--wait", "--timeout=60s", "--why=its turn is over")
		want(t, cli.ExitOK, "has ended already: cancelled", "", "cancel", "raycluster-glue")
		want(t, cli.ExitOK, "running", second, "submit", "-f", "-", "--id=second", "--wait=running", "--timeout=60s")
		var d output.Workload
		told := want(t, cli.ExitOK, "its turn is over", "", "describe", "workload", "raycluster-glue", "-o", "json")
		if err := json.Unmarshal([]byte(told.out), &d); err != nil || len(d.History) < 4 {
			t.Errorf("the life of raycluster-glue has %d entries (%v): %s", len(d.History), err, told.out)
		}
	})
	t.Run("a job to its end", func(t *testing.T) {
		want(t, cli.ExitOK, "succeeded", example(t, examples.HelloJob), "submit", "-f", "-", "--wait=finished", "--timeout=90s")
	})
	t.Run("events", func(t *testing.T) {
		got := want(t, cli.ExitOK, "raycluster/raycluster-glue", "", "events", "--workload", "raycluster-glue")
		if strings.Contains(got.out, "raycluster-glue-1") {
			t.Errorf("events of one workload have another's: %s", got.out)
		}
		for line := range strings.Lines(want(t, cli.ExitOK, "dev.muster.workload.rejected.v1", "", "events", "-o", "json").out) {
			if !json.Valid([]byte(line)) {
				t.Errorf("an event is no line of JSON: %s", line)
			}
		}
	})

	stack := running(t)
	code, last := stop()
	stopped = true
	if code != cli.ExitOK || !strings.Contains(last, "nothing is left") {
		t.Errorf("muster dev ended with exit code %d and %q", code, last)
	}
	nothingLeft(t, dir, stack)
}

// note is what the running stack tells of itself.
type note struct{ NATSURL, Kubeconfig string }

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
		t.Errorf("somebody still listens on %s", n.NATSURL)
	}
}

func TestDemo(t *testing.T) {
	findDevcluster(t)
	dir := serverDir(t)
	got := run(t, "", "demo", "--dir", dir)
	if got.code != cli.ExitOK || !strings.Contains(got.out, " 0 failed, 0 skipped") {
		t.Errorf("exit code %d\n%s\n%s", got.code, got.out, got.errOut)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
}
