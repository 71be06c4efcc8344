package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// detach starts the same command again in the background, in a session of its
// own, and returns when that one is ready.
func detach(cmd *cobra.Command, args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the path of this program: %w", err)
	}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return arg == "--detach" || strings.HasPrefix(arg, "--detach=")
	})
	child := exec.Command(exe, append(args, "--background")...)
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("starting in the background: %w", err)
	}
	ready := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil {
			_, err = io.WriteString(cmd.OutOrStdout(), line)
		}
		ready <- err
	}()
	select {
	case err := <-ready:
		if errors.Is(err, io.EOF) {
			_ = child.Wait() // It has printed the reason itself.
			return errors.New("the instance did not start")
		}
		return err
	case <-cmd.Context().Done():
		_ = child.Process.Signal(syscall.SIGTERM)
		_ = child.Wait()
		return errors.New("stopped while starting")
	}
}

// leaveTerminal lets go of the terminal, or of whatever standard output and
// error were, in favour of a log file.
func leaveTerminal(logFile string) error {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of the background: %w", err)
	}
	defer log.Close()
	for _, fd := range []int{unix.Stdout, unix.Stderr} {
		if err := unix.Dup3(int(log.Fd()), fd, 0); err != nil {
			return fmt.Errorf("redirecting output to the log: %w", err)
		}
	}
	return nil
}
