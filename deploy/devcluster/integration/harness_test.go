// Package integration tests the built binary: it starts instances as their users
// do and looks at them through the API server and the process table.
//
// MUSTER_DEVCLUSTER names the binary. Without it, the tests build one.
package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	startTimeout = 90 * time.Second
	waitTimeout  = 60 * time.Second
	endTimeout   = 20 * time.Second
	poll         = 50 * time.Millisecond
)

// binary is the program under test. root is the directory for temporary files
// that instances see: theirs alone, so that leftovers can be found.
var binary, root string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "devcluster-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	root = filepath.Join(dir, "tmp")
	if err := os.Mkdir(root, 0o700); err != nil {
		return 1, err
	}
	if binary = os.Getenv("MUSTER_DEVCLUSTER"); binary == "" {
		binary = filepath.Join(dir, "devcluster")
		build := exec.Command(filepath.Join("..", "..", "local", "build-devcluster.sh"), binary)
		if out, err := build.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("building the binary: %w\n%s", err, out)
		}
	}
	return m.Run(), nil
}

// announcement is the line that tells that an instance is ready.
type announcement struct {
	Name         string  `json:"name"`
	Kubeconfig   string  `json:"kubeconfig"`
	APIServer    string  `json:"apiServer"`
	Dir          string  `json:"dir"`
	Nodes        int     `json:"nodes"`
	ReadySeconds float64 `json:"readySeconds"`
}

// instance is a running instance and the process that started it.
type instance struct {
	announcement
	client client.Client
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *lockedBuffer
	ended  chan error
}

// command returns a call of the binary.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+root)
	return cmd
}

// start starts an instance that ends with its test.
func start(t *testing.T, args ...string) *instance {
	t.Helper()
	return startCommand(t, command(context.Background(), append([]string{"up", "--exit-on-stdin-close"}, args...)...))
}

// startCommand starts cmd, which brings up an instance, and waits until that is
// ready.
func startCommand(t *testing.T, cmd *exec.Cmd) *instance {
	t.Helper()
	i := &instance{cmd: cmd, stderr: &lockedBuffer{}, ended: make(chan error, 1)}
	cmd.Stderr = i.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	i.stdin = stdin
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.end(t) })
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- text
		i.ended <- cmd.Wait()
	}()
	select {
	case text := <-line:
		if err := json.Unmarshal([]byte(text), &i.announcement); err != nil {
			i.waitEnd(t) // It has more to say.
			t.Fatalf("the announcement %q: %v\n%s", text, err, i.stderr)
		}
	case <-time.After(startTimeout):
		t.Fatalf("not ready within %s\n%s", startTimeout, i.stderr)
	}
	t.Logf("instance %q was ready after %.1fs", i.Name, i.ReadySeconds)
	i.client = newClient(t, i.Kubeconfig)
	return i
}

// end closes the instance's standard input and waits for its end.
func (i *instance) end(t *testing.T) {
	t.Helper()
	i.stdin.Close()
	i.waitEnd(t)
}

func (i *instance) waitEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-i.ended:
		i.ended <- err // For those who ask again.
	case <-time.After(endTimeout):
		_ = i.cmd.Process.Kill()
		t.Errorf("instance %q has not ended within %s\n%s", i.Name, endTimeout, i.stderr)
	}
}

// do runs a command on the instance and returns what it prints.
func (i *instance) do(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), append(args, "--name="+i.Name)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("devcluster %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func newClient(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), rayv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until check returns "". What it returned last is the reason
// of a failure.
func eventually(t *testing.T, timeout time.Duration, check func(ctx context.Context) string) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), poll, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == "", nil
	})
	if err != nil {
		t.Fatalf("after %s: %s", timeout, last)
	}
}

// node reads a node.
func (i *instance) node(ctx context.Context, name string) (*corev1.Node, error) {
	var node corev1.Node
	return &node, i.client.Get(ctx, client.ObjectKey{Name: name}, &node)
}

// lockedBuffer can be read while a process writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
