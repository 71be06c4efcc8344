package reconcile

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// What a command creates is one Ray object, which is a bundle of one, or all objects that
// an AppWrapper wraps. A pass uses them through the three interfaces below.

// creation is what creates the objects.
type creation interface {
	// parts are the objects in the order of their creation.
	parts() []part
	// noteCreated logs and counts that all parts are there.
	noteCreated(p *pass, began time.Time)
}

// presence is what observes and removes the objects as a whole.
type presence interface {
	// observe compares what is there with the command.
	observe(ctx context.Context, p *pass) (observation, error)
	// remove deletes what is there and returns how many are left. It returns a
	// laterError for an object of a later attempt, which stays.
	remove(ctx context.Context, p *pass) (left int, err error)
}

// timing is when a pass looks at the objects again.
type timing interface {
	// nextLook is when to look again although no change is seen; zero is never.
	nextLook(p *pass) time.Duration
	// soon is when to look again at what is about to change.
	soon() time.Duration
}

// part is one of the objects.
type part interface {
	identity() bundle.Identity
	// permit returns why the object may not be created now: rules and rights may have
	// changed since the submission.
	permit(ctx context.Context, p *pass) error
	// create creates the object, or adopts the one that was created before a restart.
	create(ctx context.Context, p *pass) (uid string, err error)
	statusUID
}

// statusUID reads and writes the UID of a part in the status of its workload.
type statusUID interface {
	// createdUID is the UID of what was created for the attempt; empty before.
	createdUID(status event.GangStatus) string
	// noteUID keeps the UID in the status.
	noteUID(status *event.GangStatus, uid string)
}

// readObjects sets the objects of the pass from its command.
func (p *pass) readObjects() error {
	if !isBundle(p.command) {
		object := newRayObject(p.command)
		p.creation, p.presence, p.timing = object, object, object
		return nil
	}
	wrapped, err := readWrapped(p.command)
	if err != nil {
		return err
	}
	p.creation, p.presence, p.timing = wrapped, wrapped, wrapped
	return nil
}

// standing is how what is there compares with a command to start.
type standing int

const (
	absent  standing = iota // not created yet
	ours                    // created for the attempt, and there
	delayed                 // there, but the cache does not show it yet
	gone                    // created, and deleted by another party
	ended                   // at its end, and not read any more
	foreign                 // another party has an object of the name
	later                   // of a later attempt
	earlier                 // of an earlier attempt
)

// observation is what a pass finds of a workload's objects.
type observation struct {
	standing     standing
	object       *kubernetes.Object      // of another attempt
	uid          string                  // of the one object
	owners       []metav1.OwnerReference // the objects that were read, as owners of copies
	outcome      string                  // of a job that came to its end
	message      string
	deleting     bool
	permitted    bool           // kept only while the permission of the cluster lasts
	sizes, keeps map[string]int // of worker groups, by pod set
	lastUsed     time.Time
	checkpoint   time.Time            // the last that was reported
	status       json.RawMessage      // that KubeRay gives to an object in the place of a user's
	announced    []*kubernetes.Object // Ray objects that show the time of an eviction
}

// write copies what is ours into the status.
func (o observation) write(status *event.GangStatus) {
	status.Created, status.UID, status.Outcome, status.Message = true, o.uid, o.outcome, o.message
	status.Permitted, status.Object = o.permitted, o.status
	status.Sizes, status.Keeps, status.LastUsed, status.LastCheckpoint = o.sizes, o.keeps, o.lastUsed, o.checkpoint
}

// ownerOf is an object that was read, as an owner.
func ownerOf(id bundle.Identity, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: id.APIVersion, Kind: id.Kind, Name: id.Name, UID: types.UID(uid)}
}

// isCreated reports whether the object is the very one that was created for the
// attempt, whatever its labels are now.
func isCreated(object *kubernetes.Object, status event.GangStatus) bool {
	return status.UID != "" && object.UID == status.UID
}
