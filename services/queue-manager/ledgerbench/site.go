package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// site is the service as processes, with NATS.
type site struct {
	ctx    context.Context
	dir    string
	url    string // of the database
	server *natsserver.Server
	bus    *bus.Bus
	events *bus.Following
	count  int
}

func (s *site) open() (err error) {
	build := exec.CommandContext(s.ctx, "go", "build", "-o", s.dir, "muster.dev/muster/services/queue-manager")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build queue-manager: %w: %s", err, output)
	}
	queues := "queues:\n- {name: waiting, namespaces: [waiting]}\n- {name: fits, namespaces: [fits]}\n"
	if err := os.WriteFile(filepath.Join(s.dir, "queues.yaml"), []byte(queues), 0o600); err != nil {
		return err
	}
	if s.server, err = natsserver.Start(filepath.Join(s.dir, "nats"), -1); err != nil {
		return err
	}
	if s.bus, err = bus.Connect(s.ctx, bus.Options{URL: s.server.URL(), Name: "bench", Logger: zap.NewNop()}); err != nil {
		return err
	}
	if err := s.bus.EnsureStreams(s.ctx); err != nil {
		return err
	}
	s.events, err = s.bus.Follow(s.ctx, bus.EventsStream, event.EventsSubject("fits", "*"))
	return err
}

// quiet waits until the leader has done what follows the beginning of a term: it repeats
// the commands of all gangs that were admitted before, if NATS does not have them, and
// writes a checkpoint for replays.
func (s *site) quiet() error {
	conn, err := pgx.Connect(s.ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(s.ctx)) }()
	until := time.Now().Add(processPatience)
	for quiet := false; !quiet; time.Sleep(10 * time.Millisecond) {
		err := conn.QueryRow(s.ctx, `SELECT EXISTS (SELECT FROM bases) AND NOT EXISTS (SELECT FROM outbox)`).Scan(&quiet)
		if err != nil {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("there is no base, or still something in the outbox, after %s", processPatience)
		}
	}
	return nil
}

// node reports a node with room for all gangs of the benchmark.
func (s *site) node() error {
	observed := &event.NodeObserved{Version: event.Version{Session: time.Now().UnixNano(), Seq: 1}, Node: capacity.Node{
		Cluster: "bench", Name: "large", Ready: true, Allocatable: resource.List{"cpu": 1e9, "pods": 1e6},
	}}
	envelope, err := event.New(event.NewID(), "bench", time.Now(), observed)
	if err != nil {
		return err
	}
	return s.bus.Publish(s.ctx, event.NodeSubject("bench", "large"), envelope)
}

// submission returns the next gang of the benchmark, as intake would publish it.
func (s *site) submission() (workload.ID, event.Envelope, error) {
	s.count++
	name := fmt.Sprintf("process-%d-%d", os.Getpid(), s.count)
	w := workload.Workload{
		ID: event.WorkloadID("bench", name), Queue: "fits", Kind: workload.KindRayCluster, Name: name, Digest: name,
		PodSets: []workload.PodSet{{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1000, "pods": 1}}}},
	}
	envelope, err := event.New(event.NewID(), "bench", time.Now(), &event.WorkloadSubmitted{Workload: w, Manifest: json.RawMessage(`{"kind":"RayCluster"}`)})
	return w.ID, envelope, err
}

func (s *site) submit() (workload.ID, error) {
	id, envelope, err := s.submission()
	if err != nil {
		return "", err
	}
	return id, s.bus.Publish(s.ctx, event.WorkloadSubject("fits"), envelope)
}

// admission submits a gang and returns the time until an event reports that it is
// admitted.
func (s *site) admission() (time.Duration, error) {
	began := time.Now()
	id, err := s.submit()
	if err != nil {
		return 0, err
	}
	deadline := time.After(processPatience)
	for {
		select {
		case d := <-s.events.C:
			_, payload, err := d.Event()
			if changed, ok := payload.(*event.WorkloadChanged); err == nil && ok && changed.ID == id && changed.Phase == workload.Admitted {
				return time.Since(began), nil
			}
		case <-deadline:
			return 0, errors.New("the gang was not admitted")
		}
	}
}

// throughOutbox is how many gangs are submitted to measure the whole way.
const throughOutbox = 5000

// outbox measures the service from the submission to the events and commands.
func (s *site) outbox() error {
	before, err := s.bus.State(s.ctx, bus.EventsStream)
	if err != nil {
		return err
	}
	dispatched, err := s.bus.State(s.ctx, bus.DispatchStream)
	if err != nil {
		return err
	}
	began := time.Now()
	published := make([]bus.Published, 0, throughOutbox)
	for range throughOutbox {
		_, envelope, err := s.submission()
		if err != nil {
			return err
		}
		p, err := s.bus.PublishAsync(event.WorkloadSubject("fits"), envelope)
		if err != nil {
			return err
		}
		published = append(published, p)
	}
	for _, p := range published {
		if err := p.Wait(s.ctx); err != nil {
			return err
		}
	}
	for {
		commands, err := s.bus.State(s.ctx, bus.DispatchStream)
		if err != nil {
			return err
		}
		events, err := s.bus.State(s.ctx, bus.EventsStream)
		if err != nil {
			return err
		}
		if commands.Last-dispatched.Last >= throughOutbox && events.Last-before.Last >= 2*throughOutbox {
			took := time.Since(began).Seconds()
			fmt.Printf("  the whole way over NATS, %d gangs submitted at once: %.0f gangs/s from submission to command; outbox %.0f messages/s\n",
				throughOutbox, throughOutbox/took, 3*throughOutbox/took)
			return nil
		}
		if time.Since(began) > processPatience {
			return fmt.Errorf("after %s: %d commands, %d events", processPatience, commands.Last-dispatched.Last, events.Last-before.Last)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
