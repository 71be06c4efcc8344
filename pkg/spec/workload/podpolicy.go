package workload

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// Modes of a pod policy.
const (
	// PodsBaseline keeps pods from taking over their node: Kubernetes' Pod Security
	// Standard of the same name, and the capability SYS_PTRACE, which profilers of
	// Ray need.
	PodsBaseline = "baseline"
	// PodsRestricted is the Pod Security Standard of that name; service accounts,
	// priority and runtime classes and tolerations must be listed, too.
	PodsRestricted = "restricted"
	// PodsUnchecked allows everything.
	PodsUnchecked = "off"
)

// RequestsRequired is the value of PodPolicy.Requests that refuses pods without any.
const RequestsRequired = "required"

// PodPolicy is what pod templates of a queue's workloads may contain; package
// podpolicy checks manifests against it. The zero value is PodsBaseline. The lists add
// to what the mode allows; "*" in a list allows all.
type PodPolicy struct {
	Mode string `json:"mode,omitempty"`
	// Privileged, HostNetwork, HostPID, HostIPC and HostPorts (ports of the node)
	// allow these.
	Privileged  bool `json:"privileged,omitempty"`
	HostNetwork bool `json:"hostNetwork,omitempty"`
	HostPID     bool `json:"hostPID,omitempty"`
	HostIPC     bool `json:"hostIPC,omitempty"`
	HostPorts   bool `json:"hostPorts,omitempty"`
	// HostPaths are directories of nodes that may be mounted, with all below.
	HostPaths []string `json:"hostPaths,omitempty"`
	// Volumes are kinds of volumes, as the fields of a volume are called.
	Volumes []string `json:"volumes,omitempty"`
	// Capabilities that containers may add.
	Capabilities []string `json:"capabilities,omitempty"`
	// Sysctls that pods may set.
	Sysctls []string `json:"sysctls,omitempty"`
	// ServiceAccounts, PriorityClasses, RuntimeClasses and Tolerations (keys of
	// taints) are listed by name.
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	PriorityClasses []string `json:"priorityClasses,omitempty"`
	RuntimeClasses  []string `json:"runtimeClasses,omitempty"`
	Tolerations     []string `json:"tolerations,omitempty"`
	// Requests is RequestsRequired, in every mode, or empty: pods without requests are
	// accepted with a warning. They fit any node, however full.
	Requests string `json:"requests,omitempty"`
}

// Validate returns what of the policy cannot be, as a fault.List.
func (p PodPolicy) Validate() error {
	var faults fault.List
	if !slices.Contains([]string{"", PodsBaseline, PodsRestricted, PodsUnchecked}, p.Mode) {
		faults.Add("mode", "%q: want %s, %s or %s", p.Mode, PodsBaseline, PodsRestricted, PodsUnchecked)
	}
	if p.Requests != "" && p.Requests != RequestsRequired {
		faults.Add("requests", "%q: want %s, or leave it out", p.Requests, RequestsRequired)
	}
	for i, path := range p.HostPaths {
		if !strings.HasPrefix(path, "/") || slices.Contains(strings.Split(path, "/"), "..") {
			faults.Add(fault.Index("hostPaths", i), "%q: want an absolute path without \"..\"", path)
		}
	}
	return faults.Err()
}
