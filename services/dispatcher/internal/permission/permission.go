// Package permission has what a dispatcher obeys of the permission of its cluster: objects
// that need it are created, and kept, only while it lasts.
//
//	Ask  -->  queue-manager commits  -->  Granted  -->  Store, in the API server
//	                                                       |
//	          Look, in each process, with the Lease or without, connected to NATS or not:
//	          what is stored has ended  -->  the objects are noted as stopped, then deleted
//
// A permission counts from the question, by the clock of the process that asked, which no
// change of the wall clock moves. How long it lasts is stored, for the processes that see the
// answer being stored, each by its own clock; and its end as a wall-clock time, for processes
// that start later. Those go by whichever is over first.
//
// It is not for deciding who may run where, which is queue-manager's.
package permission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Record is what the API server has of the permission.
type Record struct {
	// Until is its end by the wall clock, and For how long it was when it was stored.
	Until time.Time         `json:"until,omitzero"`
	For   workload.Duration `json:"for,omitzero"`
	// Session is that of the dispatcher that has stored it.
	Session int64 `json:"session,omitzero"`
	// Stopping: it has ended, and objects are being deleted. It is renewed once the deletion of
	// each of them has begun.
	Stopping bool `json:"stopping,omitempty"`
	// Stopped are the attempts whose objects were deleted, as WORKLOAD/ATTEMPT. Overflowed:
	// there are more of them than are noted here.
	Stopped    []string `json:"stopped,omitempty"`
	Overflowed bool     `json:"overflowed,omitempty"`
	// Text is how the API server has it; empty for nothing.
	Text string `json:"-"`
	// Missing: the API server has not even the object that keeps the record.
	Missing bool `json:"-"`
}

// Held is an object or a pod that needs the permission.
type Held struct {
	Kind, Namespace, Name, UID string
	Workload                   workload.ID
	Attempt                    int
	// Deleting: its deletion has begun. Slow: it is a pod that was given a longer grace than
	// Stop gives.
	Deleting, Slow bool
}

// Cluster is the API server. Its writes need no Lease.
type Cluster interface {
	records
	permitted
}

// records is where the permission is stored.
type records interface {
	// Permission reads what is stored, uncached.
	Permission(ctx context.Context) (Record, error)
	// SetPermission stores a record in place of the one with the given text. The error wraps
	// ErrChanged when another one is stored.
	SetPermission(ctx context.Context, instead string, r Record) error
}

// permitted is what needs the permission.
type permitted interface {
	// Permitted lists, uncached, what needs the permission and may hold capacity, also when an
	// error means that some of it could not be listed.
	Permitted(ctx context.Context) ([]Held, error)
	// Stop deletes exactly this object, a pod with a short grace.
	Stop(ctx context.Context, h Held) error
}

// ErrChanged means that another process has stored another permission.
var ErrChanged = errors.New("another process has changed the permission")

// ErrStopping means that what may not be kept is still being stopped.
var ErrStopping = errors.New("what the permission has run out for is still being stopped")

// stoppedMost bounds the attempts that are noted as stopped: an object takes 256 KiB of
// annotations.
const stoppedMost = 4000

// Pod is the kind of pods in Held.
const Pod = "Pod"

// Keeper is the permission as one process knows it. It may be used concurrently.
type Keeper struct {
	cluster Cluster
	clock   Clock
	lasts   time.Duration

	turn sync.Mutex // while what is stored is read and judged, or replaced

	mu      sync.Mutex
	number  int64
	session int64
	asked   map[int64]question
	granted answer        // that lasts the longest
	ends    time.Duration // of what this process has stored; zero for nothing
	stored  bool          // something is, ended or not
	seen    seen
	// sightings are the permissions that this process has seen, the last one at the end, and
	// latest is the latest session of them.
	sightings []seen
	latest    int64
	stops     int      // of objects that this process has deleted
	byWall    int      // ends by the wall clock alone
	ending    []string // objects whose deletion has begun and not ended
	listed    listed
	// last is what this process last read or stored; unnoted has what it has stopped since then
	// that could not be noted.
	last, unnoted Record
	// missing is when the object was last missing that has the record.
	missing    time.Duration
	wasMissing bool

	// looked is when this process last read what is stored.
	looked    time.Duration
	hasLooked bool
}

// question is when a permission was asked for, by both clocks, and for how long.
type question struct {
	at    time.Duration
	wall  time.Time
	lasts time.Duration
}

// answer is when a permission ends, by both clocks of the process that asked.
type answer struct {
	ends time.Duration
	wall time.Time
}

// New returns the keeper of a process that asks for permissions of the given length.
func New(cluster Cluster, clock Clock, lasts time.Duration) *Keeper {
	return &Keeper{cluster: cluster, clock: clock, lasts: lasts, asked: map[int64]question{}}
}

// Every is how often the permission is asked for.
func (k *Keeper) Every() time.Duration { return k.lasts / 6 }

// Waits reports whether an answer is still to be stored.
func (k *Keeper) Waits() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.granted.ends > max(k.ends, k.clock.Elapsed())
}

// Known reports whether the API server has a permission, ended or not, as far as it answers: it
// may have one when it does not, or when the object is missing that keeps it.
func (k *Keeper) Known(ctx context.Context) bool {
	stored, err := k.read(ctx)
	return err != nil || stored.Missing || stored.Text != ""
}

// Stored reports whether the API server had a permission, ended or not, when this process last
// looked.
func (k *Keeper) Stored() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stored
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

// EndsByWall counts the permissions that have ended for this process by its wall clock while
// by its own clock they lasted.
func (k *Keeper) EndsByWall() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byWall
}

// Ending names some of the objects and pods whose deletion had begun, and not ended, when this
// process last looked.
func (k *Keeper) Ending() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ending
}

// parse reads one of Record.Stopped.
func parse(one string) (id workload.ID, attempt int) {
	text, number, _ := strings.Cut(one, "/")
	if _, err := fmt.Sscanf(number, "%d", &attempt); err != nil {
		return "", 0
	}
	return workload.ID(text), attempt
}
