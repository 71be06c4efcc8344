// Package checker proves what an installation promises from Postgres, the streams and
// the cluster, as a bystander.
//
// It has the wire formats (tables, subjects, labels, fields of events), written
// here once more, and shares no code with the services whose word it checks; nor
// does it ask them anything.
package checker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"k8s.io/client-go/dynamic"
)

const (
	lookEvery  = 150 * time.Millisecond
	askTimeout = 2 * time.Second
)

// Gang is a workload that was submitted, and how it may end.
type Gang struct {
	ID, Name string
	Ends     []string // phases
	// Unseen: its object may have been gone before it was seen.
	Unseen bool
}

// Checker watches one installation.
type Checker struct {
	DatabaseURL string
	NATS        *nats.Conn
	Kube        dynamic.Interface
	Cluster     string

	mu sync.Mutex
	// created are the UIDs of the objects that ever were there of each attempt.
	created  map[attempt]map[string]bool
	breaches []string
	// over is since when nodes seem to be over-committed.
	over map[string]time.Time
}

type attempt struct{ workload, number string }

// Watch looks all the time at what must never be, until ctx ends.
func (c *Checker) Watch(ctx context.Context) {
	c.created = map[attempt]map[string]bool{}
	var watching sync.WaitGroup
	for _, resource := range made() {
		watching.Go(func() { c.watchObjects(ctx, resource) })
	}
	watching.Go(func() { c.watchLedger(ctx) })
	watching.Wait()
}

func (c *Checker) breach(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breaches = append(c.breaches, fmt.Sprintf(format, args...))
}

// Verify returns what is wrong when all gangs are at their end; what was lost on the
// way to the streams has until then to be said again.
func (c *Checker) Verify(ctx context.Context, gangs []Gang, patience time.Duration) (found []string) {
	// A gang may end before its places are free: they are when its pods were seen gone.
	found = append(found, settled(ctx, patience, func() []string { return c.checkDatabase(ctx, gangs) })...)
	found = append(found, c.settledStreams(ctx, gangs, patience)...)
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]bool{}
	for of, uids := range c.created {
		seen[of.workload] = true
		if len(uids) > 1 {
			found = append(found, fmt.Sprintf("attempt %s of workload %s was created %d times, want once", of.number, of.workload, len(uids)))
		}
	}
	for _, g := range gangs {
		if !seen[g.ID] && !g.Unseen {
			found = append(found, fmt.Sprintf("gang %s was never created", g.Name))
		}
	}
	found = append(found, c.breaches...)
	c.breaches = nil
	slices.Sort(found)
	return slices.Compact(found)
}
