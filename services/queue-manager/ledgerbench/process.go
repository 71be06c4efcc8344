package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// process is a queue-manager.
type process struct {
	cmd    *exec.Cmd
	log    strings.Builder
	ended  chan struct{}
	ending sync.Once
}

// start starts a queue-manager and waits until it is ready: as leader to decide,
// as standby to take over.
func (s *site) start() (*process, error) {
	p := &process{ended: make(chan struct{})}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(s.ctx, filepath.Join(s.dir, "queue-manager"), "--nats-url", s.server.URL(), "--queues", filepath.Join(s.dir, "queues.yaml"),
		"--health-address", "127.0.0.1:"+port, "--log-format", "console")
	p.cmd.Env = append(os.Environ(), "MUSTER_QUEUE_MANAGER_DATABASE_URL="+s.url)
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	ctx, cancel := context.WithTimeout(s.ctx, processPatience)
	defer cancel()
	for !ready(ctx, "http://127.0.0.1:"+port+"/readyz") {
		select {
		case <-p.ended:
			return nil, fmt.Errorf("queue-manager has ended: %s", p.log.String())
		case <-ctx.Done():
			p.stop()
			return nil, fmt.Errorf("queue-manager is not ready after %s: %s", processPatience, p.log.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return p, nil
}

func (p *process) stop() {
	p.ending.Do(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
}
