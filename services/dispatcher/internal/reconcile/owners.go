package reconcile

import (
	"slices"
	"sync"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// ownerCache finds pods by their labels, and pods and RayClusters by what made them.
type ownerCache interface {
	Pods(id workload.ID) []gang.Pod
	RayClusters(objects []string) []string
	Made(owners []string) []gang.Pod
}

// owners finds the pods of a workload by UIDs: labels can be changed or forged.
type owners struct {
	cache       ownerCache
	controllers *controllers
}

// created returns the UIDs of what was created for the status' attempt, and of its
// RayClusters.
func (o *owners) created(status event.GangStatus) (created, clusters []string) {
	if status.UID != "" {
		created = append(created, status.UID)
	}
	for _, object := range status.Objects {
		created = append(created, object.UID)
	}
	if len(created) == 0 {
		return nil, nil
	}
	return created, o.cache.RayClusters(created)
}

// made returns the pods that the objects of the status' attempt made, whatever their
// labels are: directly, by a RayCluster, or, of wrapped objects, by a ReplicaSet or a
// Job of theirs. What is between is known from the last round of Strays.
func (o *owners) made(status event.GangStatus) []gang.Pod {
	created, clusters := o.created(status)
	all := slices.Concat(created, clusters)
	for _, uid := range created {
		all = append(all, o.controllers.controlledBy(uid)...)
	}
	slices.Sort(all)
	return o.cache.Made(slices.Compact(all))
}

// members are the pods of the command's workload, as far as that is known.
func (o *owners) members(t *tracked, command *event.GangCommand) []gang.Pod {
	created, clusters := o.created(t.lastOf(command))
	return gang.Members(o.cache.Pods(command.Workload), created, clusters)
}

// controllers are the objects between wrapped objects and their pods, by UID. It may be
// used concurrently.
type controllers struct {
	mu           sync.Mutex
	controllerOf map[string]string   // what controls a controller; empty for nothing
	controlled   map[string][]string // the controllers that an object controls
}

func newControllers() *controllers {
	return &controllers{controllerOf: map[string]string{}, controlled: map[string][]string{}}
}

// lookUp returns what controls a controller, and whether that is known.
func (c *controllers) lookUp(uid string) (above string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	above, known = c.controllerOf[uid]
	return above, known
}

// controlledBy returns the controllers that an object controls.
func (c *controllers) controlledBy(uid string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.controlled[uid]
}

// note keeps what controls a controller.
func (c *controllers) note(uid, above string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(uid, above)
}

// put keeps what controls a controller; the lock is held.
func (c *controllers) put(uid, above string) {
	c.controllerOf[uid] = above
	if above != "" {
		c.controlled[above] = append(c.controlled[above], uid)
	}
}

// keep forgets all but these.
func (c *controllers) keep(above map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.controllerOf, c.controlled = map[string]string{}, map[string][]string{}
	for uid, of := range above {
		c.put(uid, of)
	}
}
