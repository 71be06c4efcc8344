package ray

import (
	"maps"
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/workload"
)

// members predicts the pods of a cluster: the head, and all groups, also those
// without pods, so that each template is checked.
func (c *clusterSpec) members() ([]member, error) {
	head := &c.spec.HeadGroupSpec
	all := []member{{
		set: workload.PodSet{Name: HeadGroup, Role: workload.RoleHead, Count: 1}, path: c.path + ".headGroupSpec.template",
		labels:      knownLabels(head.Template.Labels, head.Labels, rayv1.HeadNode, HeadGroup),
		annotations: head.Template.Annotations, spec: c.headPod(), hosts: 1,
	}}
	for i := range c.spec.WorkerGroupSpecs {
		g := &c.spec.WorkerGroupSpecs[i]
		all = append(all, member{
			set:         workload.PodSet{Name: g.GroupName, Role: workload.RoleWorker, Count: int(replicas(g)) * int(g.NumOfHosts)}, // bounded by checkSize
			path:        c.groupPath(i) + ".template",
			labels:      knownLabels(g.Template.Labels, g.Labels, rayv1.WorkerNode, g.GroupName),
			annotations: g.Template.Annotations, spec: workerPod(g), hosts: int(g.NumOfHosts),
		})
	}
	for i := range all {
		if err := all[i].readTemplate(); err != nil {
			return nil, err
		}
	}
	return all, nil
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
func (m *member) readTemplate() error {
	if err := checkTemplate(m.path+".spec", m.spec); err != nil {
		return err
	}
	template, err := kube.PodTemplate(m.spec)
	if err != nil {
		return refuse(m.path+".spec", "the containers together ask too much: "+err.Error(), "ask for less")
	}
	m.set.Template = template
	return nil
}

// headPod is the head with the containers that KubeRay adds to it.
func (c *clusterSpec) headPod() *corev1.PodSpec {
	spec := c.spec.HeadGroupSpec.Template.Spec
	spec.Containers = slices.Clone(spec.Containers)
	if c.sidecarSubmitter {
		spec.Containers = append(spec.Containers, submitterContainer(c.spec))
	}
	if autoscaled(c.spec) {
		autoscaler := corev1.Container{Name: "autoscaler", Image: imageOf(spec.Containers), Resources: fixed("500m", "512Mi")}
		if options := c.spec.AutoscalerOptions; options != nil && options.Resources != nil {
			autoscaler.Resources = *options.Resources // replaces the default wholly
		}
		spec.Containers = append(spec.Containers, autoscaler)
	}
	return &spec
}

// workerPod is a worker with the init container that KubeRay adds to it. It
// matters for workers that ask for less.
func workerPod(g *rayv1.WorkerGroupSpec) *corev1.PodSpec {
	spec := g.Template.Spec
	wait := corev1.Container{Name: "wait-gcs-ready", Image: imageOf(spec.Containers), Resources: fixed("200m", "256Mi")}
	spec.InitContainers = append(slices.Clone(spec.InitContainers), wait)
	return &spec
}

// submitterContainer is what KubeRay submits a job with when the user says
// nothing about it (GetDefaultSubmitterContainer).
func submitterContainer(spec *rayv1.RayClusterSpec) corev1.Container {
	return corev1.Container{
		Name: "ray-job-submitter", Image: imageOf(spec.HeadGroupSpec.Template.Spec.Containers),
		Resources: corev1.ResourceRequirements{Limits: amounts("1", "1Gi"), Requests: amounts("500m", "200Mi")},
	}
}

// imageOf is the image of the Ray container, which is the first.
func imageOf(containers []corev1.Container) string {
	if len(containers) == 0 {
		return ""
	}
	return containers[0].Image
}

func fixed(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: amounts(cpu, memory), Limits: amounts(cpu, memory)}
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: apiresource.MustParse(cpu), corev1.ResourceMemory: apiresource.MustParse(memory),
	}
}
