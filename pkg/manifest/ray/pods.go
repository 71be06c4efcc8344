package ray

import (
	"maps"
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// members predicts the pods of a cluster: the head, and all groups, also those
// without pods, so that each template is checked.
func (c *clusterSpec) members() ([]member, error) {
	head := &c.spec.HeadGroupSpec
	all := []member{{
		set: workload.PodSet{Name: HeadGroup, Role: workload.RoleHead, Count: 1}, created: 1, path: c.path + ".headGroupSpec.template",
		labels:      knownLabels(head.Template.Labels, head.Labels, rayv1.HeadNode, HeadGroup),
		annotations: head.Template.Annotations, spec: c.headPod(), hosts: 1,
	}}
	for i := range c.spec.WorkerGroupSpecs {
		g := &c.spec.WorkerGroupSpecs[i]
		size := c.sizeOf(g)
		all = append(all, member{
			set:     workload.PodSet{Name: g.GroupName, Role: workload.RoleWorker, Count: size.admitted, Later: size.later},
			created: size.created, path: c.groupPath(i) + ".template",
			labels:      knownLabels(g.Template.Labels, g.Labels, rayv1.WorkerNode, g.GroupName),
			annotations: g.Template.Annotations, spec: c.workerPod(g), hosts: int(g.NumOfHosts), autoscaled: autoscaled(c.spec),
		})
	}
	for i := range all {
		if err := all[i].readTemplate(c.reading); err != nil {
			return nil, err
		}
	}
	return all, c.keepForCleanup(&all[0])
}

// knownLabels are the labels of a pod of which the value is known now.
func knownLabels(template, group map[string]string, nodeType rayv1.RayNodeType, name string) map[string]string {
	all := map[string]string{"ray.io/is-ray-node": "yes", "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator"}
	maps.Copy(all, template)
	maps.Copy(all, group)
	all["ray.io/node-type"], all[groupLabel], all[kube.PodSetLabel] = string(nodeType), name, name
	return all
}

// readTemplate checks a member's pod and reads what of it matters for its place.
func (m *member) readTemplate(r *reading) error {
	if err := r.operator.addOverhead(r.verdict, m.path+".spec", m.spec); err != nil {
		return err
	}
	if err := checkTemplate(r.verdict, m.path+".spec", m.spec); err != nil {
		return err
	}
	template, err := kube.PodTemplate(m.spec)
	if err != nil {
		return refuse(m.path+".spec", "the containers together request too much: "+err.Error(), "ask for less")
	}
	m.set.Template, m.asCreated = template, template
	return nil
}

// keepForCleanup makes the head's place large enough for what comes after it in a
// cluster with GCS fault tolerance: KubeRay builds that pod from the head's.
func (c *clusterSpec) keepForCleanup(head *member) error {
	if !c.cleansRedis() {
		return nil
	}
	cleaner := *head.spec
	cleaner.Containers = []corev1.Container{redisCleanupContainer(imageOf(head.spec.Containers))}
	template, err := kube.PodTemplate(&cleaner)
	if err != nil {
		return refuse(head.path+".spec", "the containers together request too much: "+err.Error(), "ask for less")
	}
	head.set.Template = head.asCreated.Max(template)
	return nil
}

// headPod is the head with the containers that KubeRay adds to it.
func (c *clusterSpec) headPod() *corev1.PodSpec {
	spec := c.spec.HeadGroupSpec.Template.Spec
	image := imageOf(spec.Containers)
	spec.Containers = slices.Clone(spec.Containers)
	if c.sidecarSubmitter {
		spec.Containers = append(spec.Containers, submitterContainer(image))
	}
	if autoscaled(c.spec) {
		autoscaler := autoscalerContainer(image)
		if options := c.spec.AutoscalerOptions; options != nil && options.Resources != nil {
			autoscaler.Resources = *options.Resources // replaces the default wholly
		}
		spec.Containers = append(spec.Containers, autoscaler)
	}
	spec.Containers = append(spec.Containers, c.operator.HeadSidecarContainers...)
	return &spec
}

// workerPod is a worker with the containers that KubeRay adds to it.
func (c *clusterSpec) workerPod(g *rayv1.WorkerGroupSpec) *corev1.PodSpec {
	spec := g.Template.Spec
	if c.operator.InitContainerInjection {
		spec.InitContainers = append(slices.Clone(spec.InitContainers), waitGCSReady(imageOf(spec.Containers)))
	}
	spec.Containers = append(slices.Clone(spec.Containers), c.operator.WorkerSidecarContainers...)
	return &spec
}

// addOverhead gives the pod the overhead of its runtime class, as the API server
// does when the pod is created.
func (o Operator) addOverhead(v *verdict, path string, spec *corev1.PodSpec) error {
	if spec.RuntimeClassName == nil {
		if len(spec.Overhead) > 0 {
			return refuse(path+".overhead", "is set without runtimeClassName", "remove it: Kubernetes takes the overhead from the runtime class")
		}
		return nil
	}
	class := *spec.RuntimeClassName
	overhead, known := o.RuntimeClasses[class]
	switch {
	case !known && len(spec.Overhead) > 0: // which Kubernetes holds against the class
	case !known:
		v.refuse(path+".runtimeClassName", "is "+fault.Quote(class)+", of which Muster does not know the overhead",
			"give the pod's overhead, or name the class under runtimeClasses in the KubeRay profile")
	case len(spec.Overhead) > 0 && !apiequality.Semantic.DeepEqual(overhead, spec.Overhead):
		return refuse(path+".overhead", "is not that of runtime class "+fault.Quote(class), "remove it: Kubernetes takes the overhead from the runtime class")
	default:
		spec.Overhead = overhead
	}
	return nil
}

// cleansRedis reports whether KubeRay cleans Redis up after the cluster
// (IsGCSFaultToleranceEnabled).
func (c *clusterSpec) cleansRedis() bool {
	return c.operator.RedisCleanup && (c.spec.GcsFaultToleranceOptions != nil || c.faultTolerant())
}
