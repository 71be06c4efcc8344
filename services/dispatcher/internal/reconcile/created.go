package reconcile

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/bundle"
	"muster.dev/muster/pkg/event"
)

// withObject returns the objects with one more, which replaces an earlier one of
// its name.
func withObject(objects []event.CreatedObject, id bundle.Identity, uid string) []event.CreatedObject {
	objects = slices.DeleteFunc(slices.Clone(objects), func(o event.CreatedObject) bool { return isItem(o, id) })
	return append(objects, event.CreatedObject{APIVersion: id.APIVersion, Kind: id.Kind, Name: id.Name, UID: uid})
}

// createdUID is the UID of the object that was created for the attempt; empty when
// that is not known.
func createdUID(status event.GangStatus, id bundle.Identity) string {
	if i := slices.IndexFunc(status.Objects, func(o event.CreatedObject) bool { return isItem(o, id) }); i >= 0 {
		return status.Objects[i].UID
	}
	return ""
}

func isItem(o event.CreatedObject, id bundle.Identity) bool {
	return o.APIVersion == id.APIVersion && o.Kind == id.Kind && o.Name == id.Name
}

// creating returns since when the attempt is tried.
func (r *Reconciler) creating(command *event.GangDesired) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tried[command.Workload].attempt != command.Attempt {
		r.tried[command.Workload] = removal{command.Attempt, r.now()}
	}
	return r.tried[command.Workload].since
}
