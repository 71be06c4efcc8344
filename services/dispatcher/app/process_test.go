package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/service"
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

func (w *world) config(d *step) *app.Config {
	return &app.Config{
		NATS: bus.Settings{URL: d.url}, Cluster: clusterName, Kubeconfig: w.kubeconfig, SweepEvery: 100 * time.Millisecond,
		Lease: lease.Config{Lease: rbac.Namespace + "/muster-dispatcher-" + w.namespace, Duration: leaseDuration},
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
