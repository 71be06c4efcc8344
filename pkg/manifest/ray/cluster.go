package ray

import (
	"fmt"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
)

func (r *reading) cluster() ([]member, error) {
	var cluster rayv1.RayCluster
	if err := decode(r.tree, &cluster); err != nil {
		return nil, err
	}
	c := clusterSpec{reading: r, path: "spec", spec: &cluster.Spec, annotations: cluster.Annotations}
	specTree, _ := r.tree["spec"].(map[string]any)
	return c.read(specTree)
}

// clusterSpec is the spec of a RayCluster, of its own or in another object.
type clusterSpec struct {
	*reading
	path        string
	spec        *rayv1.RayClusterSpec
	annotations map[string]string
	// sidecarSubmitter: KubeRay adds the job's submitter to the head.
	sidecarSubmitter bool
	// reserved are names that no worker group may have.
	reserved []string
}

// read checks the spec and predicts its pods.
func (c *clusterSpec) read(tree map[string]any) ([]member, error) {
	if groups, _ := tree["workerGroupSpecs"].([]any); len(groups) != len(c.spec.WorkerGroupSpecs) {
		return nil, refuse(c.path+".workerGroupSpecs", "cannot be read", "want a list of worker groups")
	}
	setDefaults(c.spec, tree)
	waits := c.checkLife()
	if _, ok := tree["headGroupSpec"].(map[string]any); !ok {
		return nil, refuse(c.path+".headGroupSpec", "is missing", "a cluster has a head: give its pod template")
	}
	if where, what, why := kube.BadLabels(map[string]any{"annotations": tree["headServiceAnnotations"]}); why != "" {
		return nil, refuse(c.path+".headServiceAnnotations"+strings.TrimPrefix(where, "annotations"), what, why)
	}
	if err := c.checkAutoscaling(); err != nil {
		return nil, err
	}
	if err := c.checkGroups(); err != nil {
		return nil, err
	}
	if err := c.checkAsKubeRay(); err != nil {
		return nil, err
	}
	c.warnOfAmounts()
	members, err := c.members()
	if waits {
		nothingCreated(members)
	}
	return members, err
}

// nothingCreated notes that KubeRay creates none of the pods as things are.
func nothingCreated(members []member) {
	for i := range members {
		members[i].created = 0
	}
}

// checkLife refuses what takes the start of the cluster out of Muster's hands,
// and reports whether it keeps KubeRay from creating pods.
func (c *clusterSpec) checkLife() (waits bool) {
	suspended := c.spec.Suspend != nil && *c.spec.Suspend
	if suspended {
		c.verdict.refuse(c.path+".suspend", "is true", "remove it: the queue holds the workload back until it can start")
	}
	return c.managedElsewhere(c.path, c.spec.ManagedBy) || suspended
}

// multiKueue is the other manager that KubeRay's schema allows.
const multiKueue = "kueue.x-k8s.io/multikueue"

// managedElsewhere reports whether KubeRay leaves the object alone.
func (r *reading) managedElsewhere(path string, manager *string) bool {
	if manager == nil || *manager == "ray.io/kuberay-operator" {
		return false
	}
	r.verdict.refuse(path+".managedBy", "is "+fault.Quote(*manager), `remove it, or set it to "ray.io/kuberay-operator"`)
	return *manager == multiKueue
}

func (c *clusterSpec) checkGroups() error {
	groups := c.spec.WorkerGroupSpecs
	if len(groups) > maxGroups {
		return refuse(c.path+".workerGroupSpecs", fmt.Sprintf("has %d groups", len(groups)),
			fmt.Sprintf("at most %d are accepted", maxGroups))
	}
	seen := map[string]int{}
	for i := range groups {
		where := c.groupPath(i)
		if err := c.checkGroupName(where+".groupName", groups[i].GroupName); err != nil {
			return err
		}
		if first, twice := seen[groups[i].GroupName]; twice {
			return refuse(where+".groupName", fault.Quote(groups[i].GroupName)+" is the name of "+c.groupPath(first)+" already",
				"give each group a name of its own")
		}
		seen[groups[i].GroupName] = i
		if err := checkCounts(where, &groups[i]); err != nil {
			return err
		}
	}
	return c.checkSize()
}

func (c *clusterSpec) groupPath(i int) string {
	return fmt.Sprintf("%s.workerGroupSpecs[%d]", c.path, i)
}

func (c *clusterSpec) checkGroupName(where, name string) error {
	for _, reserved := range append([]string{HeadGroup}, c.reserved...) {
		if name == reserved {
			return refuse(where, "is "+fault.Quote(name), "the name is reserved: choose another")
		}
	}
	// It becomes a label of the pods and, in lower case, a part of their names.
	if faults := validation.IsDNS1123Label(strings.ToLower(name)); len(faults) > 0 {
		return refuse(where, fault.Quote(name)+" cannot name a group of pods", faults[0])
	}
	return nil
}

func checkCounts(where string, g *rayv1.WorkerGroupSpec) error {
	for _, count := range []struct {
		field string
		value int32
	}{{"replicas", *g.Replicas}, {"minReplicas", *g.MinReplicas}, {"maxReplicas", *g.MaxReplicas}} {
		if count.value < 0 {
			return refuse(where+"."+count.field, fmt.Sprintf("is %d", count.value), "want zero or more")
		}
	}
	if *g.MinReplicas > *g.MaxReplicas {
		return refuse(where+".minReplicas", fmt.Sprintf("%d is more than maxReplicas, which is %d", *g.MinReplicas, *g.MaxReplicas),
			"lower the one or raise the other")
	}
	if g.NumOfHosts < 1 {
		return refuse(where+".numOfHosts", fmt.Sprintf("is %d", g.NumOfHosts), "want one or more, or leave it out")
	}
	return nil
}

// replicas is how many replicas KubeRay creates of a group with its defaults
// set; each has NumOfHosts pods.
func replicas(g *rayv1.WorkerGroupSpec) int32 {
	if suspended(g) {
		return 0
	}
	return min(max(*g.Replicas, *g.MinReplicas), *g.MaxReplicas)
}

func autoscaled(spec *rayv1.RayClusterSpec) bool {
	return spec.EnableInTreeAutoscaling != nil && *spec.EnableInTreeAutoscaling
}
