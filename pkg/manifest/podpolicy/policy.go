// Package podpolicy states what the pod templates of a queue's workloads may
// contain. A submitter has its pods created by KubeRay's operator, which
// may create any; so what they may be is decided before. What a pod can reach of its
// node is held against Kubernetes' Pod Security Standards, by Kubernetes' own code
// (k8s.io/pod-security-admission); the queue's lists are allowed beyond it.
//
// The policy is about what a pod can reach of its node and of the cluster. What
// keeps Muster from planning a pod is refused elsewhere (package ray), and who
// may submit where is not its matter either. The package is pure.
package podpolicy

import (
	"errors"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// ErrDenied is wrapped by every error of Check.
var ErrDenied = errors.New("not allowed")

// Validate returns what of a policy cannot be, as a fault.List.
func Validate(rules workload.PodPolicy) error {
	var faults fault.List
	for i, kind := range rules.Volumes {
		if kind != all && !slices.Contains(volumeKinds(), kind) {
			faults.Add(fault.Index("volumes", i), "%q is no kind of volume in Kubernetes; want one of %s", kind, strings.Join(volumeKinds(), ", "))
		}
	}
	faults.Under("", rules.Validate())
	return faults.Err()
}

// policy is a queue's policy with what its mode allows.
type policy struct{ workload.PodPolicy }

// all in a list allows everything of the kind.
const all = "*"

func (p policy) unchecked() bool { return p.Mode == workload.PodsUnchecked }

func (p policy) restricted() bool { return p.Mode == workload.PodsRestricted }

// listed reports whether a name is in the list, or not to be listed in the mode.
func (p policy) listed(list []string, name string) bool {
	return !p.restricted() && len(list) == 0 || allows(list, name)
}

func allows(list []string, name string) bool {
	return slices.Contains(list, all) || slices.Contains(list, name)
}
