package integration

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const manifests = `apiVersion: v1
kind: Namespace
metadata:
  name: team-a
---
# Nothing but a comment.
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: dispatcher
  namespace: team-a
`

// TestApply starts an instance with manifests and a copy of its kubeconfig: the
// objects are there when it is ready, the copy is gone when it has ended. The end of the process
// that holds the pipe ends it.
func TestApply(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	copied := filepath.Join(t.TempDir(), "copied", "kubeconfig")
	i := start(t, "--name=apply", "--apply="+dir, "--kubeconfig-out="+copied, "--dir="+state)
	if i.Dir != state {
		t.Errorf("state is in %s, want it where --dir says", i.Dir)
	}
	var account corev1.ServiceAccount
	err := newClient(t, copied).Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "dispatcher"}, &account)
	if err != nil {
		t.Errorf("the applied service account, by the copied kubeconfig: %v", err)
	}
	i.endsBy(t, func() { i.end(t) })
	if _, err := os.Stat(copied); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copied kubeconfig after the end: %v, want it gone", err)
	}
}

// TestComponentFailure kills a component: the instance ends, says which one and
// why, and leaves nothing.
func TestComponentFailure(t *testing.T) {
	i := start(t, "--name=fails")
	pids := i.pids(t)
	signal(t, pids[len(pids)-1], syscall.SIGKILL)
	i.waitEnd(t)
	waitProcessesGone(t, pids)
	waitDirGone(t, i.Dir)
	if text := i.stderr.String(); !strings.Contains(text, "ended (signal: killed)") || !strings.Contains(text, ".log") {
		t.Errorf("the instance does not say which component failed:\n%s", text)
	}
	if code := i.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

// TestStartFailure sees that what cannot start says why and leaves nothing.
func TestStartFailure(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown fleet":   {[]string{"--fleet=none-such"}, "no such preset"},
		"missing trace":   {[]string{"--fleet=openb"}, "MUSTER_OPENB_DIR"},
		"bad name":        {[]string{"--name=No/Name"}, "instance name"},
		"dead parent":     {[]string{"--parent-pid=999999999"}, "no such process"},
		"impossible time": {[]string{"--timeout=100ms"}, "not ready within 100ms"},
		"bad manifests":   {[]string{"--apply=none-such"}, "looking for manifests"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := command(t.Context(), append([]string{"up", "--name=never"}, tc.args...)...)
			cmd.Env = append(cmd.Env, "MUSTER_OPENB_DIR=")
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), tc.want) {
				t.Errorf("up %v: %v, want it to fail with %q\n%s", tc.args, err, tc.want, out)
			}
			left, err := filepath.Glob(filepath.Join(root, "*", "never"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
