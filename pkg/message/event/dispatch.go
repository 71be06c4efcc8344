package event

import (
	"encoding/json"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// What shall be true of a workload's objects.
const (
	Provision = "provision" // nodes are asked for, and nothing else of the workload exists
	Present   = "present"   // the objects of this attempt exist, pods on their placements
	Absent    = "absent"    // no object and no pod of the workload exists
	Ended     = "ended"     // the job is over: no pod of the workload exists; the object itself may stay, to be read
	Forgotten = "forgotten" // nothing more to do; the dispatcher may forget it
)

// GangCommand is a command to the dispatcher of a cluster: the wanted state of one
// workload. Last value per workload, so a dispatcher that starts reads all of them and
// compares with the cluster; executing one twice changes nothing.
type GangCommand struct {
	Workload workload.ID `json:"workload"`
	Cluster  string      `json:"cluster"`
	Attempt  int         `json:"attempt"`
	// Epoch is the leader's that decided it; an older one than already seen for
	// the workload is refused.
	Epoch int64 `json:"epoch"`
	// Order counts the messages of that leader; of two commands the one with the larger
	// epoch, then order, is the newer.
	Order     int64  `json:"order,omitempty"`
	State     string `json:"state"`
	Queue     string `json:"queue"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Home is the cluster of the user's object, in whose place the object of this name is created;
	// empty where there is none. The dispatcher reports the status of its object for it.
	Home string `json:"home,omitempty"`
	// Created, with Present: the object of this attempt existed. If it is missing, it
	// was deleted.
	Created bool `json:"created,omitempty"`
	// Trusted: the scheduler places the pods, they have no gate and no pin.
	Trusted bool `json:"trusted,omitempty"`
	// Whole, with Present: no pod starts before all pods of the gang exist.
	Whole bool `json:"whole,omitempty"`
	// Permitted, with Present: the object may be created, and kept, only while the permission
	// of the cluster lasts (PermissionGranted).
	Permitted bool `json:"permitted,omitempty"`
	// ForceAfter is how long after its grace a pod that does not end is deleted by
	// force.
	ForceAfter workload.Duration `json:"forceAfter,omitzero"`
	// EvictAt, with Present: when the workload is evicted or, while queue-manager has it
	// running, its pods leave a drained node. It is written into the object.
	EvictAt time.Time `json:"evictAt,omitzero"`
	// Placements are set with Present, and with Absent for what KubeRay runs after
	// the gang.
	Placements []workload.Placement `json:"placements,omitempty"`
	// Terms, with Present, are the node selectors and tolerations that the flavors of pod
	// sets add to their pods (Kueue's PodSetInfo).
	Terms []workload.PodSetTerms `json:"terms,omitempty"`
	// PodPolicy, with Present, is the queue's; the manifest is checked against it
	// before the object is created.
	PodPolicy workload.PodPolicy `json:"podPolicy,omitzero"`
	// ObjectPolicy, with Present, is the queue's; each object is checked against it
	// before its creation.
	ObjectPolicy workload.ObjectPolicy `json:"objectPolicy,omitzero"`
	// Identity, with Present, is the user of Kubernetes that the submitter of a message
	// is bound to. An object of a cluster has its own in the manifest.
	Identity *workload.Identity `json:"identity,omitempty"`
	// Carries, with Present, are the objects of other clusters of which copies are made here, as far
	// as the manifest refers to them.
	Carries []workload.Carried `json:"carries,omitempty"`
	// Provision, with Provision and Present, is the request for nodes that is to exist. With
	// other states it is the one that is to be deleted.
	Provision *ProvisionCommand `json:"provision,omitempty"`
	// Yield, with Present, is set when places were given up. It is the name of this
	// command: the places are freed once GangStatus.Yielded repeats it.
	Yield string `json:"yield,omitempty"`
	// GiveUp, with Present, has a RayCluster give up workers for another workload.
	GiveUp *GiveUp `json:"giveUp,omitempty"`
	// PodSets are set with Present, Manifest where NeedsManifest reports it.
	PodSets  []workload.PodSet `json:"podSets,omitempty"`
	Manifest json.RawMessage   `json:"manifest,omitempty"`
}

// GiveUp is which workers a RayCluster gives up.
type GiveUp struct {
	// Sizes are the most pods of worker groups that stay.
	Sizes map[string]int `json:"sizes"`
	// Leave has the places of the pods that go.
	Leave []workload.Placement `json:"leave"`
}

// Supersedes reports whether the command was given after the other one.
func (e *GangCommand) Supersedes(other *GangCommand) bool {
	if e.Epoch != other.Epoch {
		return e.Epoch > other.Epoch
	}
	return e.Order > other.Order
}

// NeedsManifest reports whether the dispatcher needs the manifest to obey: to
// create the objects, and to find all objects of a workload that has several.
func (e *GangCommand) NeedsManifest() bool {
	return e.State == Present || e.State == Provision || e.Kind == workload.KindAppWrapper && e.State != Forgotten
}

// EventType implements Payload.
func (*GangCommand) EventType() string { return "dev.muster.dispatch.desired.v1" }

// CloudEventSubject implements Payload.
func (e *GangCommand) CloudEventSubject() string { return string(e.Workload) }

// Outcomes of a Ray job.
const (
	OutcomeSucceeded = "succeeded"
	OutcomeFailed    = "failed"
)

// GangStatus is the state of a workload's objects, as the dispatcher reports it. Last
// value per workload; repeating it changes nothing.
type GangStatus struct {
	Workload workload.ID `json:"workload"`
	Cluster  string      `json:"cluster"`
	Attempt  int         `json:"attempt"`
	Epoch    int64       `json:"epoch"`
	// Session is the epoch of the dispatcher's lease. Once a later one of the cluster
	// is known, messages of an earlier one are ignored.
	Session int64 `json:"session,omitempty"`
	// Created: the object of this attempt was seen in the API server.
	Created bool `json:"created,omitempty"`
	// UID of the object of this attempt. Another object of its name is not the
	// workload's.
	UID string `json:"uid,omitempty"`
	// Objects are those of a workload of several objects that were created for this
	// attempt. Only they are deleted by their UID; the others are looked for by label.
	Objects []CreatedObject `json:"objects,omitempty"`
	// LastUsed is the reported time of the last use of a RayCluster.
	LastUsed time.Time `json:"lastUsed,omitzero"`
	// LastCheckpoint is the reported time of the last checkpoint of its work; of several
	// objects with pods the earliest, and none unless all report.
	LastCheckpoint time.Time `json:"lastCheckpoint,omitzero"`
	// Refused: the object can never be created; Message is why.
	Refused bool `json:"refused,omitempty"`
	// Mendable, with Refused: an administrator can mend that, by a right or a quota, or by the
	// deletion of what has the name of a copy. The workload waits and is tried again.
	Mendable bool `json:"mendable,omitempty"`
	// Permitted: the object of this attempt carries the mark by which every dispatcher of the
	// cluster stops it when the permission has run out.
	Permitted bool `json:"permitted,omitempty"`
	// Stopped, with Gone: the dispatcher deleted the object, because the permission had run out.
	Stopped bool `json:"stopped,omitempty"`
	// Outcome of a job that has ended; empty before.
	Outcome string `json:"outcome,omitempty"`
	// Gone: the object does not exist (any more), seen by an uncached read.
	Gone bool `json:"gone,omitempty"`
	// Released: no pod of the workload holds or will hold capacity, seen by an
	// uncached read after Gone or Outcome.
	Released bool `json:"released,omitempty"`
	// Sizes are the pods that KubeRay keeps of each worker group of a RayCluster;
	// its owner or Ray's autoscaler may have changed them. Of a wrapped Job or Pod of which
	// pods have succeeded they are those that it still needs.
	Sizes map[string]int `json:"sizes,omitempty"`
	// Keeps are the pods of each of these groups that keep their places: as many, or
	// maxReplicas where Ray's autoscaler may create them again.
	Keeps map[string]int `json:"keeps,omitempty"`
	// Later is the attempt of an object that is there, when it is later than the command's
	// and was created in an epoch before the command's: the database was restored to a state
	// older than it. Zero otherwise.
	Later int `json:"later,omitempty"`
	// Yielded is the GangCommand.Yield of the executed command: no pod is, or will be,
	// sent elsewhere. Empty when the command has none.
	Yielded string `json:"yielded,omitempty"`
	// Provision is what became of the request for nodes; nil where none is wanted.
	Provision *ProvisionStatus `json:"provision,omitempty"`
	// Message has the details of a refusal or an outcome; before these, the reason why
	// KubeRay cannot create the pods, or why none of them starts.
	Message string `json:"message,omitempty"`
	// Left names what the removal of the attempt waits for, with the finalizers; beside
	// Released, what stays. Empty before a removal takes long.
	Left string `json:"left,omitempty"`
	// Object is the status that KubeRay gives to the object, where the command has a Home: at most
	// MostObjectStatus bytes.
	Object json.RawMessage `json:"object,omitempty"`
	// Answers is the ReportWanted.Ask that this answers; empty when none was asked.
	Answers string `json:"answers,omitempty"`
}

// MostObjectStatus bounds GangStatus.Object. KubeRay writes one to three KiB.
const MostObjectStatus = 16 << 10

// CreatedObject is an object as the API server created it.
type CreatedObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// EventType implements Payload.
func (*GangStatus) EventType() string { return "dev.muster.dispatch.status.v1" }

// CloudEventSubject implements Payload.
func (e *GangStatus) CloudEventSubject() string { return string(e.Workload) }

// ReportWanted asks the watcher and the dispatcher of a cluster to publish their state
// of a workload or a node once more, before queue-manager acts on silence. When it
// names neither, they publish everything, because another queue-manager leads.
type ReportWanted struct {
	Cluster  string      `json:"cluster"`
	Epoch    int64       `json:"epoch"`
	Workload workload.ID `json:"workload,omitempty"`
	Node     string      `json:"node,omitempty"`
	// Ask names the question; the answers repeat it.
	Ask string `json:"ask,omitempty"`
}

// EventType implements Payload.
func (*ReportWanted) EventType() string { return "dev.muster.report.wanted.v1" }

// CloudEventSubject implements Payload.
func (e *ReportWanted) CloudEventSubject() string { return e.Cluster }
