package lease_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// server keeps one Lease with what the fake of client-go lacks: versions that an update has to
// name, and answers that are late. Its clock is that of the test.
type server struct {
	mu      sync.Mutex
	lease   *coordination.Lease
	version int
	links   []*link
	stored  time.Time // when the holder's last renewal was
}

// link is the way of one process to the server.
type link struct {
	coordinationv1.LeaseInterface // what is not needed
	server                        *server

	mu       sync.Mutex
	cut      bool          // nothing is answered
	down     bool          // all is refused
	late     time.Duration // of each answer
	skew     time.Duration // of this process's clock
	blind    bool          // it may not watch
	kept     bool          // it cannot release
	requests map[string]int
	shown    *watch.RaceFreeFakeWatcher
}

func (s *server) link() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &link{server: s, requests: map[string]int{}}
	s.links = append(s.links, l)
	return l
}

// set changes the link.
func (l *link) set(change func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// counted returns the requests so far, by verb.
func (l *link) counted() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.requests)
}

// pass takes the time of a request.
func (l *link) pass(ctx context.Context, verb string) error {
	l.mu.Lock()
	l.requests[verb]++
	cut, down, late := l.cut, l.down, l.late
	l.mu.Unlock()
	if cut {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(late):
	}
	if down {
		return errors.New("connection refused")
	}
	return nil
}

// Leases implements coordinationv1.LeasesGetter.
func (l *link) Leases(string) coordinationv1.LeaseInterface { return l }

// Get implements coordinationv1.LeaseInterface.
func (l *link) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordination.Lease, error) {
	if err := l.pass(ctx, "get"); err != nil {
		return nil, err
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if l.server.lease == nil {
		return nil, apierrors.NewNotFound(leases, name)
	}
	return l.server.lease.DeepCopy(), nil
}

// Create implements coordinationv1.LeaseInterface.
func (l *link) Create(ctx context.Context, lease *coordination.Lease, _ metav1.CreateOptions) (*coordination.Lease, error) {
	return l.store(ctx, "create", lease, func(s *server) error {
		if s.lease != nil {
			return apierrors.NewAlreadyExists(leases, lease.Name)
		}
		return nil
	})
}

// Update implements coordinationv1.LeaseInterface.
func (l *link) Update(ctx context.Context, lease *coordination.Lease, _ metav1.UpdateOptions) (*coordination.Lease, error) {
	l.mu.Lock()
	kept := l.kept && *lease.Spec.HolderIdentity == ""
	l.mu.Unlock()
	if kept {
		return nil, apierrors.NewServiceUnavailable("rolling")
	}
	return l.store(ctx, "update", lease, func(s *server) error {
		if s.lease == nil {
			return apierrors.NewNotFound(leases, lease.Name)
		}
		if s.lease.ResourceVersion != lease.ResourceVersion {
			return apierrors.NewConflict(leases, lease.Name, fmt.Errorf("it has version %s", s.lease.ResourceVersion))
		}
		return nil
	})
}

// store stores the Lease, and shows it to those who watch.
func (l *link) store(ctx context.Context, verb string, lease *coordination.Lease, refuse func(*server) error) (*coordination.Lease, error) {
	if err := l.pass(ctx, verb); err != nil {
		return nil, err
	}
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := refuse(s); err != nil {
		return nil, err
	}
	stored := lease.DeepCopy()
	s.version++
	stored.ResourceVersion = strconv.Itoa(s.version)
	stored.Spec.RenewTime = &metav1.MicroTime{Time: stored.Spec.RenewTime.Add(l.skew)}
	s.lease, s.stored = stored, time.Now()
	for _, other := range s.links {
		other.show(stored)
	}
	return stored.DeepCopy(), nil
}

// show sends an event through a link that works.
func (l *link) show(lease *coordination.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown != nil && !l.cut && !l.down && !l.shown.IsStopped() {
		l.shown.Modify(lease.DeepCopy())
	}
}

// note has another writer of the Lease add an annotation.
func (s *server) note(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	noted := s.lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&noted.ObjectMeta, key, value)
	s.version++
	noted.ResourceVersion = strconv.Itoa(s.version)
	s.lease = noted
	for _, l := range s.links {
		l.show(noted)
	}
}

// remove deletes the Lease.
func (s *server) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.lease
	s.lease = nil
	for _, l := range s.links {
		l.mu.Lock()
		if l.shown != nil && !l.cut && !l.down && !l.shown.IsStopped() {
			l.shown.Delete(gone.DeepCopy())
		}
		l.mu.Unlock()
	}
}

// Watch implements coordinationv1.LeaseInterface.
func (l *link) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := l.pass(ctx, "watch"); err != nil {
		return nil, err
	}
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blind {
		return nil, apierrors.NewForbidden(leases, "l", errors.New("the role is of an earlier version"))
	}
	l.shown = watch.NewRaceFreeFake()
	if l.server.lease != nil && l.server.lease.ResourceVersion != o.ResourceVersion {
		l.shown.Modify(l.server.lease.DeepCopy())
	}
	return l.shown, nil
}
