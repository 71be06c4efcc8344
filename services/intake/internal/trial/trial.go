// Package trial reads a message in a separate process, to find out whether a process
// survives reading it.
//
// NATS redelivers a message that kills its reader to the next process, for ever, and
// the delivery count does not tell it from innocent messages that were delivered with
// it. A trial does. It discards what it reads, so it is not for reading messages.
package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/metrics"
	"syscall"
	"time"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/services/intake/internal/submission"
)

// ErrDied is wrapped when the process did not survive the message.
var ErrDied = errors.New("the process that read the message died")

const (
	// environment marks the process of a trial.
	environment = "MUSTER_INTAKE_TRIAL"
	// timeMost and memoryMost bound a trial; memory is in bytes.
	timeMost   = 10 * time.Second
	memoryMost = 400 << 20
	lookEvery  = 5 * time.Millisecond
	// The process prints these, so that a death differs from a failed start.
	begun, ended = "begun\n", "ended\n"
)

// input is the standard input of the process.
type input struct {
	Operator ray.Operator
	Subject  string
	Headers  map[string][]string
	Data     []byte
}

// Run runs the trial of a message in another process of this program. An error that
// wraps ErrDied means that the process died; any other, that there was no trial. A
// signal counts only the second time, because the cause may lie outside: the kernel
// kills processes when the machine runs out of memory.
func Run(ctx context.Context, operator ray.Operator, m submission.Message) error {
	given, err := json.Marshal(input{operator, m.Subject, m.Headers, m.Data})
	if err != nil {
		return fmt.Errorf("trial of a message: encode it: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("trial of a message: find this program: %w", err)
	}
	signalled, err := once(ctx, program, given)
	if signalled {
		_, err = once(ctx, program, given)
	}
	return err
}

// once is one trial. signalled reports that a signal that once did not send ended the
// process.
func once(ctx context.Context, program string, given []byte) (signalled bool, err error) {
	trying, cancel := context.WithTimeout(ctx, 2*timeMost) // the process ends itself earlier
	defer cancel()
	process := exec.CommandContext(trying, program)
	process.Env = []string{environment + "=1"} // nothing else, because the message may be hostile
	process.Stdin = bytes.NewReader(given)
	printed, err := process.Output()
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case string(printed) == begun+ended:
		return false, nil
	case string(printed) == begun:
		status, known := process.ProcessState.Sys().(syscall.WaitStatus)
		return known && status.Signaled() && trying.Err() == nil, fmt.Errorf("%w: %w", ErrDied, err)
	}
	return false, fmt.Errorf("trial of a message: start the process: %w", err)
}

// Main runs the trial and exits if this process is one; otherwise it returns. read
// reads the message; nil means as intake does.
func Main(read func(ray.Operator, submission.Message)) {
	if os.Getenv(environment) == "" {
		return
	}
	// The kernel kills this process first when memory runs out.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	var given input
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		os.Exit(2)
	}
	_, _ = io.WriteString(os.Stdout, begun)
	time.AfterFunc(timeMost, func() { os.Exit(3) })
	go guardMemory()
	if read == nil {
		read = readAll
	}
	read(given.Operator, submission.Message{Subject: given.Subject, Headers: given.Headers, Data: given.Data, Stored: time.Now()})
	_, _ = io.WriteString(os.Stdout, ended)
	os.Exit(0)
}

func readAll(operator ray.Operator, m submission.Message) {
	for _, one := range submission.Split(m) {
		_, _ = submission.Read(operator, one) // only survival counts
	}
}

// guardMemory ends the process when it uses too much memory.
func guardMemory() {
	taken := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	for range time.Tick(lookEvery) {
		if metrics.Read(taken); taken[0].Value.Uint64() > memoryMost {
			os.Exit(4)
		}
	}
}
