package quota

import (
	"fmt"
	"regexp"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// PodSetUpdates are Kueue's: what pods get when their nodes are there.
type PodSetUpdates struct {
	NodeSelector []NodeSelectorUpdate `json:"nodeSelector,omitempty"`
}

// NodeSelectorUpdate is a label of nodes whose value is one of the request's
// provisioningClassDetails.
type NodeSelectorUpdate struct {
	Key    string `json:"key"`
	Detail string `json:"valueFromProvisioningClassDetail"`
}

// NodeLabels has, for each label by which the pods choose the nodes of their request, the detail
// that is its value; nil for none.
func (c *ProvisioningConfig) NodeLabels() map[string]string {
	if c.Updates == nil || len(c.Updates.NodeSelector) == 0 {
		return nil
	}
	labels := map[string]string{}
	for _, u := range c.Updates.NodeSelector {
		labels[u.Key] = u.Detail
	}
	return labels
}

// Bounds of podSetUpdates, as Kueue has them. A detail is a name, so it gets a smaller one.
const (
	maxNodeSelector = 8
	maxLabelKey     = 317
	maxDetail       = 253
)

var labelKey = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

func (v *validation) podSetUpdates(path string, config *ProvisioningConfig) {
	if config.Updates == nil {
		return
	}
	path += ".podSetUpdates"
	if config.Class == workload.PlaceholderClass {
		v.faults.Add(path, "does nothing with the class %s, whose nodes are no request's", workload.PlaceholderClass)
	}
	path += ".nodeSelector"
	if n := len(config.Updates.NodeSelector); n > maxNodeSelector {
		v.faults.Add(path, "has %d labels; want at most %d", n, maxNodeSelector)
	}
	seen := map[string]bool{}
	for i, u := range config.Updates.NodeSelector {
		at := fmt.Sprintf("%s[%d]", path, i)
		if len(u.Key) > maxLabelKey || !labelKey.MatchString(u.Key) {
			v.faults.Add(at+".key", "%s: want the key of a label", fault.Quote(u.Key))
		}
		if seen[u.Key] {
			v.faults.Add(at+".key", "%s is there twice", fault.Quote(u.Key))
		}
		seen[u.Key] = true
		if u.Detail == "" || len(u.Detail) > maxDetail {
			v.faults.Add(at+".valueFromProvisioningClassDetail", "%s: want the name of a detail, of at most %d bytes", fault.Quote(u.Detail), maxDetail)
		}
	}
}
