package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/test/bench/figures"
)

// stages notes when the messages of a gang pass by on NATS, to tell where the
// time goes.
type stages struct {
	mu   sync.Mutex
	at   map[string]time.Time // of the gang that is being measured, by stage
	took map[string][]time.Duration
}

// stageOf finds the stages by the first words of the subjects, in their order.
var stageOf = []struct{ subject, stage string }{
	{"muster.workload.", "read by intake"},
	{"muster.dispatch.", "admitted, committed, commanded"},
}

func (s *site) listen() (*stages, error) {
	st := &stages{at: map[string]time.Time{}, took: map[string][]time.Duration{}}
	_, err := s.stack.Bus.Conn().Subscribe("muster.>", func(m *nats.Msg) {
		now := time.Now()
		for _, stage := range stageOf {
			if strings.HasPrefix(m.Subject, stage.subject) {
				st.mu.Lock()
				if _, known := st.at[stage.stage]; !known {
					st.at[stage.stage] = now
				}
				st.mu.Unlock()
			}
		}
	})
	return st, err
}

// lastCommand returns a function that tells when the last command to start a
// gang passed by.
func (s *site) lastCommand() (last func() time.Time, err error) {
	var mu sync.Mutex
	var at time.Time
	_, err = s.stack.Bus.Conn().Subscribe("muster.dispatch.>", func(*nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		at = time.Now()
	})
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	}, err
}

// begin forgets the last gang.
func (st *stages) begin() {
	st.mu.Lock()
	defer st.mu.Unlock()
	clear(st.at)
}

// end adds the gang's times, each since the stage before, and returns them; none where a message
// was missed.
func (st *stages) end(began, created time.Time) (took []time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	last := began
	for _, stage := range stageOf {
		at, seen := st.at[stage.stage]
		if !seen {
			return nil
		}
		took = append(took, at.Sub(last))
		last = at
	}
	took = append(took, created.Sub(last))
	for i, name := range stageNames() {
		st.took[name] = append(st.took[name], took[i])
	}
	return took
}

// stageNames are the stages in their order.
func stageNames() (names []string) {
	for _, stage := range stageOf {
		names = append(names, stage.stage)
	}
	return append(names, "created")
}

func (st *stages) print() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, name := range stageNames() {
		took := st.took[name]
		if len(took) > 0 {
			fmt.Printf("    %-32s %10s %10s\n", name, figures.Millis(figures.Quantile(took, 0.50)), figures.Millis(figures.Quantile(took, 0.99)))
		}
	}
}
