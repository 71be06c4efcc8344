package ray

import (
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/workload"
)

// podSets predicts the pods of a cluster: the head, and the groups that have
// pods. Every template is checked, also of a group without pods.
func (c *clusterSpec) podSets() ([]workload.PodSet, error) {
	head, err := podSet(c.path+".headGroupSpec.template", HeadGroup, workload.RoleHead, 1, c.headPod())
	if err != nil {
		return nil, err
	}
	sets := []workload.PodSet{head}
	for i := range c.spec.WorkerGroupSpecs {
		g := &c.spec.WorkerGroupSpecs[i]
		count := int(replicas(g)) * int(g.NumOfHosts) // bounded by checkSize
		set, err := podSet(c.groupPath(i)+".template", g.GroupName, workload.RoleWorker, count, workerPod(g))
		if err != nil {
			return nil, err
		}
		if count > 0 {
			sets = append(sets, set)
		}
	}
	return sets, nil
}

func podSet(path, name, role string, count int, spec *corev1.PodSpec) (workload.PodSet, error) {
	if err := checkTemplate(path+".spec", spec); err != nil {
		return workload.PodSet{}, err
	}
	template, err := kube.PodTemplate(spec)
	if err != nil {
		return workload.PodSet{}, refuse(path+".spec", "the containers together ask too much: "+err.Error(), "ask for less")
	}
	return workload.PodSet{Name: name, Role: role, Count: count, Template: template}, nil
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
