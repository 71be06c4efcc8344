package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// spentMark begins the line that spend prints. The report reads it as output of the package.
const spentMark = "processor time: "

// spend runs a test binary in the place of go test (-exec) and returns its exit code. It prints the
// processor time that the binary spent with all programs that it has started and waited for, such as
// nats-server and the dev cluster. What it is called with for the compiler's files, GOTMPDIR, the test
// does not get: it would keep its own there.
func spend(command []string, out io.Writer) (int, error) {
	runtime.LockOSThread() // the kernel kills the test when the thread that has started it ends
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GOTMPDIR=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start the tests %q: %w", command[0], err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}()
	var failed *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &failed) {
		return 1, fmt.Errorf("run the tests %q: %w", command[0], err)
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	_, err := fmt.Fprintf(out, "%s%.1fs\n", spentMark, spent.Seconds())
	return max(cmd.ProcessState.ExitCode(), 0), errors.Join(err, killed(cmd.ProcessState))
}

// killed returns an error where a signal has ended the tests.
func killed(state *os.ProcessState) error {
	if state.Exited() {
		return nil
	}
	return fmt.Errorf("the tests ended: %s", state)
}

// spentIn returns the time of a line that spend has printed, and whether it is one.
func spentIn(line string) (time.Duration, bool) {
	text, is := strings.CutPrefix(strings.TrimSpace(line), spentMark)
	if !is {
		return 0, false
	}
	spent, err := time.ParseDuration(text)
	return spent, err == nil
}
