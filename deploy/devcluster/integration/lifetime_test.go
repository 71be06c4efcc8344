package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// pids returns the processes of an instance, its supervisor first.
func (i *instance) pids(t *testing.T) []int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(i.Dir, "instance.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		PID        int
		Components []struct{ PID int }
	}
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	pids := []int{state.PID}
	for _, c := range state.Components {
		pids = append(pids, c.PID)
	}
	if len(pids) != 7 {
		t.Fatalf("the instance has %d processes, want a supervisor and 6 components", len(pids))
	}
	return pids
}

// waitProcessesGone waits until no process of pids runs.
func waitProcessesGone(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, endTimeout, func(context.Context) string {
		for _, pid := range pids {
			if running(pid) {
				return fmt.Sprintf("process %d still runs", pid)
			}
		}
		return ""
	})
}

// running reports whether a process runs; a zombie that was not waited for does
// not.
func running(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func waitDirGone(t *testing.T, dir string) {
	t.Helper()
	eventually(t, endTimeout, func(context.Context) string {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("directory %s: %v, want it gone", dir, err)
		}
		return ""
	})
}

// endsBy ends the instance and looks for what it left. Each way in which an instance ends is
// that of one test: the end of its standard input in TestApply, SIGINT in TestInstance, SIGTERM
// in testRay, the command in TestDetached, the end of its parent in TestKilledInstanceIsSwept.
func (i *instance) endsBy(t *testing.T, end func()) {
	t.Helper()
	pids := i.pids(t)
	end()
	waitProcessesGone(t, pids)
	waitDirGone(t, i.Dir)
}

// startBelowShell starts an instance whose parent is a shell: i.cmd is the shell.
func startBelowShell(t *testing.T, args ...string) *instance {
	t.Helper()
	args = append([]string{"up", "--with-parent"}, args...)
	cmd := command(context.Background(), args...)
	cmd.Path = "/bin/sh"
	// The colon keeps the shell from replacing itself with the program.
	cmd.Args = append([]string{"sh", "-c", `"$0" "$@"; :`, binary}, args...)
	return startCommand(t, cmd)
}

// TestKilledInstanceIsSwept kills a supervisor, which takes its components with
// it, and sees that the next instance removes what is left on disk. That one has a parent that
// cannot say goodbye, and takes the instance with it.
func TestKilledInstanceIsSwept(t *testing.T) {
	i := start(t, "--name=killed")
	pids := i.pids(t)
	signal(t, i.cmd.Process.Pid, syscall.SIGKILL)
	waitProcessesGone(t, pids)
	if _, err := os.Stat(i.Dir); err != nil {
		t.Fatalf("the killed instance's directory: %v; the test has nothing to see", err)
	}
	next := startBelowShell(t, "--name=next")
	waitDirGone(t, i.Dir)
	if !strings.Contains(next.stderr.String(), `"killed"`) {
		t.Errorf("the next instance says nothing of what it removed:\n%s", next.stderr)
	}
	next.endsBy(t, func() { signal(t, next.cmd.Process.Pid, syscall.SIGKILL) })
}

// TestDetached leaves an instance in the background, where a second one of its
// name is refused.
func TestDetached(t *testing.T) {
	out, err := command(t.Context(), "up", "--detach", "--name=back").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command(context.Background(), "down", "--name=back").Run() })
	var i instance
	if err := json.Unmarshal(out, &i.announcement); err != nil {
		t.Fatalf("the announcement %q: %v", out, err)
	}
	again, err := command(t.Context(), "up", "--name=back").CombinedOutput()
	if err == nil || !strings.Contains(string(again), "is running already") {
		t.Errorf("a second instance of the name: %v, want it refused\n%s", err, again)
	}
	var report struct {
		Ready      bool
		ReadyNodes int
	}
	if err := json.Unmarshal([]byte(i.do(t, "status", "-o", "json")), &report); err != nil {
		t.Fatal(err)
	}
	if !report.Ready || report.ReadyNodes != 2 {
		t.Errorf("status is %+v, want it ready with 2 nodes", report)
	}
	i.endsBy(t, func() {
		i.do(t, "down")
		if _, err := os.Stat(i.Dir); err == nil { // the command has ended it when it returns
			t.Errorf("after down there is still a directory %s", i.Dir)
		}
	})
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatalf("sending %s to %d: %v", s, pid, err)
	}
}
