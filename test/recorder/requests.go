package recorder

import (
	"fmt"
	"sync"
)

// What a ProvisioningRequest and its pods and nodes look like, as documented in docs/queues.md
// and deploy/devcluster/README.md.
const (
	consumedRequest = "autoscaling.x-k8s.io/consume-provisioning-request"
	nodeOfRequest   = "devcluster.muster.dev/provisioned-for"
)

// Requests is a bystander that watches the ProvisioningRequests of a namespace with the pods
// there and the nodes that come, and checks what Muster promises of them: no request without
// a workload, one at a time, nodes for all pods that lack a place or for none, and no nodes
// for a gang that does not use them.
type Requests struct {
	mu        sync.Mutex
	gangs     map[string]*asker
	requests  map[string]*asked // by UID, also those that are gone
	byName    map[string]*asked
	nodes     map[string]string          // the UID of the request that each came for
	came      map[string]map[string]bool // by the UID of a request the nodes that ever came for it
	pods      map[string]*askersPod
	violation []string
}

// asker is a workload as its submitter knows it.
type asker struct {
	pods    int // that run at once
	lacking int // of those have no place when it is submitted
	ended   bool
	harmed  bool            // by the driver of the test: a node was taken away, or it was cancelled
	whole   map[string]bool // attempts all of whose pods ran at once
	used    map[string]bool // requests that pods of these named
}

// asked is a request.
type asked struct {
	name, workload string
	pods           int64
	deleting, gone bool
	provisioned    bool
	failed         bool
}

type askersPod struct {
	workload, attempt, request string
	running                    bool
}

func newRequests() *Requests {
	return &Requests{gangs: map[string]*asker{}, requests: map[string]*asked{}, byName: map[string]*asked{}, nodes: map[string]string{}, came: map[string]map[string]bool{}, pods: map[string]*askersPod{}}
}

// Submitted announces a workload before it is submitted: that many pods run at once, and so
// many of them have no place.
func (r *Requests) Submitted(workload string, pods, lacking int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gangs[workload] = &asker{pods: pods, lacking: lacking, whole: map[string]bool{}, used: map[string]bool{}}
}

// Harmed reports that nodes may come for the workload and not be used, or that it may ask for
// some of them once more: one was taken away, or the workload was cancelled while it waited.
func (r *Requests) Harmed(workload string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gangs[workload].harmed = true
}

// Ended reports that the workload has ended and holds nothing.
func (r *Requests) Ended(workload string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gangs[workload].ended = true
}

// Whole reports whether all pods of some attempt of the workload have run at once.
func (r *Requests) Whole(workload string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.gangs[workload].whole) > 0
}

func (r *Requests) violate(format string, args ...any) {
	r.violation = append(r.violation, fmt.Sprintf(format, args...))
}
