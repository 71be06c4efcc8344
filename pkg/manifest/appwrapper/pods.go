package appwrapper

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// source is a pod template of an object and how many pods come from it.
type source struct {
	path  []string
	count int
}

// pods returns the pod sets of an object and notes where its templates are.
func (r *reader) pods(it *item, wrapped *bundle.Item) ([]workload.PodSet, error) {
	if bundle.IsRay(it.id) {
		return r.rayPods(it, wrapped)
	}
	sources, known, err := r.sources(it)
	if err != nil {
		return nil, err
	}
	if sources, err = declaredSources(it, sources, known); err != nil {
		return nil, err
	}
	var sets []workload.PodSet
	for n, s := range sources {
		set, err := it.podSet(n, len(sources), s)
		if err != nil {
			return nil, err
		}
		wrapped.Templates = append(wrapped.Templates, bundle.Template{Path: s.path, PodSet: set.Name})
		if set.Count > 0 {
			sets = append(sets, set)
		}
	}
	return sets, nil
}

// podSet reads a template.
func (it *item) podSet(n, of int, s source) (workload.PodSet, error) {
	where := it.where
	for _, step := range s.path {
		where += "." + step
	}
	pod, err := bundle.At(it.object, s.path)
	if err != nil {
		return workload.PodSet{}, refuse(where, "is no pod template", "want an object with metadata and spec")
	}
	spec, err := it.operator.ReadPod(where+".spec", pod["spec"])
	if err != nil {
		return workload.PodSet{}, err
	}
	template, err := kube.PodTemplate(spec)
	if err != nil {
		return workload.PodSet{}, refuse(where+".spec", "the containers together request too much: "+err.Error(), "ask for less")
	}
	// The dot keeps the name apart from those of Ray's groups, which have none.
	name := fmt.Sprintf("%d.%s", it.number, strings.ToLower(it.id.Kind))
	if of > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return workload.PodSet{Name: name, Role: workload.RoleWorker, Count: s.count, Template: template}, nil
}

// podGroup is a wrapped PodGroup of a gang scheduler.
type podGroup struct {
	where     string
	minMember int
}

// sources returns the templates of the kinds that are known; known is false for
// others.
func (r *reader) sources(it *item) (list []source, known bool, err error) {
	spec, _ := it.object["spec"].(map[string]any)
	group, _, _ := strings.Cut(it.id.APIVersion, "/")
	count := func(object map[string]any, field string, unset int) int {
		if err != nil {
			return 0
		}
		var n int
		n, err = it.number32(object, field, unset)
		return n
	}
	switch it.id.Kind + "." + group {
	case "Pod.v1":
		return []source{{nil, 1}}, true, nil
	case "Deployment.apps", "ReplicaSet.apps", "ReplicationController.v1":
		list = []source{{[]string{"spec", "template"}, count(spec, "replicas", 1)}}
	case "StatefulSet.apps":
		n := count(spec, "replicas", 1)
		if n > 1 && text(spec, "podManagementPolicy") != "Parallel" {
			return nil, true, refuse(it.where+".spec.podManagementPolicy", "is not Parallel",
				"want Parallel: otherwise each pod waits for the one before it to be ready, and the gang for all of them to exist")
		}
		list = []source{{[]string{"spec", "template"}, n}}
	case "Job.batch":
		if spec["suspend"] == true {
			return nil, true, refuse(it.where+".spec.suspend", "is true", "remove it: the queue holds the workload back until it can start")
		}
		list = []source{{[]string{"spec", "template"}, min(count(spec, "parallelism", 1), count(spec, "completions", 1<<30))}}
	case "Job.batch.volcano.sh":
		list, err = it.listed([]string{"spec", "tasks"}, []string{"template"}, "replicas")
	case "JobSet.jobset.x-k8s.io":
		list, err = it.jobSet()
	case "PyTorchJob.kubeflow.org":
		for _, role := range []string{"Master", "Worker"} {
			if replicas, e := bundle.At(it.object, []string{"spec", "pytorchReplicaSpecs", role}); e == nil {
				list = append(list, source{[]string{"spec", "pytorchReplicaSpecs", role, "template"}, count(replicas, "replicas", 1)})
			}
		}
	case "DaemonSet.apps", "CronJob.batch", "RayCronJob.ray.io":
		return nil, true, refuse(it.where+".kind", "is "+it.id.Kind, "remove it: Muster cannot reserve room for the pods that it will make")
	case "PodGroup.scheduling.x-k8s.io", "PodGroup.scheduling.volcano.sh", "PodGroup.scheduling.sigs.k8s.io":
		r.podGroups = append(r.podGroups, podGroup{it.where, count(spec, "minMember", 0)})
	default:
		return nil, podless(it.id), nil
	}
	return list, true, err
}

// podless reports kinds that are known to make no pods.
func podless(id bundle.Identity) bool {
	group, _, _ := strings.Cut(id.APIVersion, "/")
	switch group {
	case "v1", "networking.k8s.io", "rbac.authorization.k8s.io", "policy", "autoscaling", "gateway.networking.k8s.io", "route.openshift.io",
		"scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.sigs.k8s.io", "storage.k8s.io", "coordination.k8s.io":
		return true
	}
	return false
}

// number32 reads a count that the API server would take.
func (it *item) number32(object map[string]any, field string, unset int) (int, error) {
	value, given := object[field]
	if !given || value == nil {
		return unset, nil
	}
	n, err := strconv.ParseInt(fmt.Sprint(value), 10, 32)
	if err != nil || n < 0 || n > ray.MaxPods {
		return 0, refuse(it.where+".spec."+field, "is "+fault.Quote(fmt.Sprint(value)), fmt.Sprintf("want a whole number from 0 to %d", ray.MaxPods))
	}
	return int(n), nil
}

// listed reads the templates of a list of groups of pods.
func (it *item) listed(list, template []string, field string) ([]source, error) {
	parent, err := bundle.At(it.object, list[:len(list)-1])
	if err != nil {
		return nil, refuse(it.where+"."+strings.Join(list, "."), "is missing", "want a list")
	}
	groups, _ := parent[list[len(list)-1]].([]any)
	var sources []source
	for i, value := range groups {
		group, _ := value.(map[string]any)
		n, err := it.number32(group, field, 1)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{slices.Concat(list, []string{strconv.Itoa(i)}, template), n})
	}
	return sources, nil
}

// jobSet multiplies the replicas of each Job with its pods.
func (it *item) jobSet() ([]source, error) {
	sources, err := it.listed([]string{"spec", "replicatedJobs"}, []string{"template", "spec", "template"}, "replicas")
	for i := range sources {
		job, e := bundle.At(it.object, sources[i].path[:len(sources[i].path)-1])
		if e != nil {
			return nil, refuse(it.where+"."+strings.Join(sources[i].path, "."), "is no pod template", "want an object with metadata and spec")
		}
		parallelism, e := it.number32(job, "parallelism", 1)
		if e != nil {
			return nil, e
		}
		completions, e := it.number32(job, "completions", ray.MaxPods)
		if e != nil {
			return nil, e
		}
		sources[i].count *= min(parallelism, completions)
	}
	return sources, err
}

// declaredSources takes a component's podSets for kinds that are not known, and
// holds them against the templates of kinds that are.
func declaredSources(it *item, inferred []source, known bool) ([]source, error) {
	if len(it.podSets) == 0 {
		return inferred, nil
	}
	declared := make([]source, len(it.podSets))
	for i, set := range it.podSets {
		declared[i] = source{set.path, set.replicas}
	}
	if !known {
		return declared, nil
	}
	same := slices.EqualFunc(declared, inferred, func(a, b source) bool {
		return a.count == b.count && slices.Equal(a.path, b.path)
	})
	if !same {
		return nil, refuse(it.podSets[0].where, fmt.Sprintf("differ from the %d that the template of %s %s has", len(inferred), it.id.Kind, it.id.Name),
			"leave podSets out: Muster reads them from the template")
	}
	return inferred, nil
}
