// Package permission has what a dispatcher obeys of the permission of its cluster: objects
// that need it are created, and kept, only while it lasts.
//
//	Ask  -->  queue-manager commits  -->  Granted  -->  Store, in the API server
//	                                                       |
//	          Look, in each process, with the Lease or without, connected to NATS or not:
//	          what is stored has ended  -->  the objects are noted as stopped, then deleted
//
// A permission counts from the question, by the clock of the process that asked, which no
// change of the wall clock moves. The end is stored as a wall-clock time, for processes that
// start later, with how long it was: a process that runs goes by whichever is over first.
//
// It is not for deciding who may run where, which is queue-manager's.
package permission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Record is what the API server has of the permission.
type Record struct {
	// Until is its end by the wall clock, and For how long it was when it was stored.
	Until time.Time         `json:"until,omitzero"`
	For   workload.Duration `json:"for,omitzero"`
	// Stopping: it has ended, and objects are being deleted. It is renewed once none is left.
	Stopping bool `json:"stopping,omitempty"`
	// Stopped are the attempts whose objects were deleted, as WORKLOAD/ATTEMPT.
	Stopped []string `json:"stopped,omitempty"`
	// Text is how the API server has it; empty for nothing.
	Text string `json:"-"`
}

// Held is an object or a pod that needs the permission.
type Held struct {
	Kind, Namespace, Name, UID string
	Workload                   workload.ID
	Attempt                    int
	// Deleting: its deletion has begun. Overdue: its grace ended long ago, so it goes by force.
	Deleting, Overdue bool
}

// Cluster is the API server. Its writes need no Lease.
type Cluster interface {
	// Permission reads what is stored, uncached.
	Permission(ctx context.Context) (Record, error)
	// SetPermission stores a record in place of the one with the given text. The error wraps
	// ErrChanged when another one is stored.
	SetPermission(ctx context.Context, instead string, r Record) error
	// Permitted lists, uncached, what needs the permission and may hold capacity.
	Permitted(ctx context.Context) ([]Held, error)
	// Stop deletes exactly this object, a pod with a short grace.
	Stop(ctx context.Context, h Held) error
}

// ErrChanged says that another process has stored another permission.
var ErrChanged = errors.New("another process has changed the permission")

// stoppedMost bounds the attempts that are noted as stopped: an object takes 256 KiB of
// annotations.
const stoppedMost = 4000

// Keeper is the permission as one process knows it. It may be used concurrently.
type Keeper struct {
	cluster Cluster
	clock   Clock
	lasts   time.Duration

	mu      sync.Mutex
	number  int64
	session int64
	asked   map[int64]question
	granted time.Duration // the end of the last answer, on the clock of the process
	ends    time.Duration // of what this process has stored; zero for nothing
	seen    seen
	stops   int // of objects that this process has deleted
	// listed is what was stored when nothing was found that needs it, and listAgain when that
	// is looked for again.
	listed    string
	listAgain time.Duration
}

// question is when a permission was asked for, and for how long.
type question struct{ at, lasts time.Duration }

// seen is since when a process has seen what is stored.
type seen struct {
	until time.Time
	at    time.Duration
}

// New returns the keeper of a process that asks for permissions of the given length.
func New(cluster Cluster, clock Clock, lasts time.Duration) *Keeper {
	return &Keeper{cluster: cluster, clock: clock, lasts: lasts, asked: map[int64]question{}}
}

// Every is how often the permission is asked for.
func (k *Keeper) Every() time.Duration { return k.lasts / 6 }

// Ask returns the next question of a session: for as long as what is stored lasts, at least.
// It returns nil where nothing needs the permission, and nothing did.
func (k *Keeper) Ask(ctx context.Context, cluster string, session int64, needed bool) (*event.PermissionAsked, error) {
	stored, err := k.cluster.Permission(ctx)
	if err != nil || !needed && stored.Text == "" {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != session {
		k.session, k.asked = session, map[int64]question{}
	}
	now := k.clock.Elapsed()
	for number, q := range k.asked {
		if now-q.at > q.lasts {
			delete(k.asked, number)
		}
	}
	lasts := min(max(k.lasts, stored.Until.Sub(k.clock.Wall()), time.Duration(stored.For)), event.PermissionMost)
	if stored.Until.IsZero() {
		lasts = k.lasts
	}
	k.number++
	k.asked[k.number] = question{now, lasts}
	return &event.PermissionAsked{Cluster: cluster, Session: session, Number: k.number, For: workload.Duration(lasts)}, nil
}

// Granted takes in an answer, and reports whether it is one to a question of this process.
func (k *Keeper) Granted(g *event.PermissionGranted) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	q, known := k.asked[g.Number]
	if !known || g.Session != k.session {
		return false
	}
	delete(k.asked, g.Number)
	k.granted = max(k.granted, q.at+min(k.lasts, q.lasts, time.Duration(g.For)))
	return true
}

// Store stores what was granted, and from then on it counts. When what is stored has ended,
// everything that needs it is removed first. keep says which stopped attempts are still
// commanded, and so have to be reported.
func (k *Keeper) Store(ctx context.Context, keep func(workload.ID, int) bool) error {
	stored, err := k.cluster.Permission(ctx)
	if err != nil {
		return err
	}
	if k.over(stored) {
		if left, err := k.stop(ctx, stored); err != nil || left > 0 {
			return err
		}
		if stored, err = k.cluster.Permission(ctx); err != nil {
			return err
		}
	}
	k.mu.Lock()
	ends, now, wall := k.granted, k.clock.Elapsed(), k.clock.Wall()
	k.mu.Unlock()
	if ends <= now {
		return nil // the answer came too late
	}
	next := Record{Until: wall.Add(ends - now).UTC().Round(0), For: workload.Duration(ends - now), Stopped: slices.DeleteFunc(slices.Clone(stored.Stopped), func(one string) bool {
		id, attempt := parse(one)
		return !keep(id, attempt)
	})}
	if err := k.cluster.SetPermission(ctx, stored.Text, next); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends, k.seen = ends, seen{next.Until, now}
	return nil
}

// Waits reports whether an answer is still to be stored.
func (k *Keeper) Waits() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.granted > max(k.ends, k.clock.Elapsed())
}

// Known reports whether the API server has a permission, ended or not.
func (k *Keeper) Known(ctx context.Context) bool {
	stored, err := k.cluster.Permission(ctx)
	return err == nil && stored.Text != ""
}

// Valid reports whether an object that needs the permission may be created and changed now.
func (k *Keeper) Valid() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clock.Elapsed() < k.ends
}

// Left is for how long what this process has stored lasts; 0 for nothing.
func (k *Keeper) Left() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(0, k.ends-k.clock.Elapsed())
}

// Stops counts the objects and pods that this process has deleted.
func (k *Keeper) Stops() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stops
}

// parse reads one of Record.Stopped.
func parse(one string) (id workload.ID, attempt int) {
	text, number, _ := strings.Cut(one, "/")
	if _, err := fmt.Sscanf(number, "%d", &attempt); err != nil {
		return "", 0
	}
	return workload.ID(text), attempt
}
