package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/service/logging"
	"muster.dev/muster/services/muster-dev/inprocess"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// childVariable makes this program one of Muster's services, with the settings that it holds:
// only a process can be killed.
const childVariable = "MUSTER_BENCH_SERVICE"

// readyLine is the line that a child prints when it acts or stands by.
const readyLine = "ready"

// childSettings are what a service in a process of its own is given.
type childSettings struct {
	Service, NATSURL, DatabaseURL, Cluster, KubeNamespaces string
	Kubeconfigs                                            map[string]string
	NodeGrace                                              time.Duration
	Queues                                                 []queuemanager.Queue
	Policy                                                 quota.Config
}

// runChild runs the service until its standard input ends, which it does with its parent.
func runChild(settings string) int {
	var c childSettings
	if err := json.Unmarshal([]byte(settings), &c); err != nil {
		fmt.Fprintln(os.Stderr, "bench: read the settings of a service:", err)
		return 2
	}
	logger, err := logging.New("error", "console")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	services := inprocess.New(logger, inprocess.Config{
		NATSURL: c.NATSURL, DatabaseURL: c.DatabaseURL, Cluster: c.Cluster, Kubeconfigs: c.Kubeconfigs, KubeNamespaces: c.KubeNamespaces,
		NodeGrace: c.NodeGrace, Queues: c.Queues, Policy: c.Policy,
	})
	services.Ended = func(err error) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if err := services.Start(context.Background(), c.Service); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	fmt.Println(readyLine)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it ends
	return 0
}

// child is a service in a process of its own.
type child struct {
	command *exec.Cmd
	input   io.Closer
}

// spawn starts a service of the site as a process, and returns when it acts or stands by.
func (s *site) spawn(ctx context.Context, service string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	given := s.stack.Settings()
	settings, err := json.Marshal(childSettings{
		Service: service, NATSURL: given.NATSURL, DatabaseURL: given.DatabaseURL, Cluster: given.Cluster, KubeNamespaces: given.KubeNamespaces,
		Kubeconfigs: given.Kubeconfigs, NodeGrace: given.NodeGrace, Queues: given.Queues, Policy: given.Policy,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the settings of %s: %w", service, err)
	}
	c := &child{command: exec.Command(program)}
	c.command.Env, c.command.Stderr = append(os.Environ(), childVariable+"="+string(settings)), os.Stderr
	if c.input, err = c.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", service, err)
	}
	output, err := c.command.StdoutPipe()
	if err == nil {
		err = c.command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", service, err)
	}
	started := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(output).ReadString('\n')
		if err == nil && line != readyLine+"\n" {
			err = fmt.Errorf("it printed %q", line)
		}
		started <- err
	}()
	waiting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case err = <-started:
	case <-waiting.Done():
		err = waiting.Err()
	}
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("start %s: %w", service, err)
	}
	return c, nil
}

// kill kills the process, as kill -9 does, and waits for its end. A second call does nothing.
func (c *child) kill() {
	if c.command.ProcessState == nil {
		_ = c.command.Process.Kill()
		_ = c.command.Wait() // the error is the signal
	}
}
