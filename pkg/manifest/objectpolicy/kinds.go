package objectpolicy

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// defaultKinds are what workloads wrap, and what gives their submitters no right
// beyond their pods. Networks, rights and what reaches out of the namespace are
// not among them. Secret is here for workloads that an earlier version accepted and that
// still wait: a new submission with one is always refused.
func defaultKinds() []string {
	return []string{
		"ConfigMap", "Secret", "Service", "PersistentVolumeClaim", "Pod",
		"Deployment.apps", "StatefulSet.apps", "ReplicaSet.apps", "Job.batch",
		"RayCluster.ray.io", "RayJob.ray.io", "RayService.ray.io",
		"PodGroup.scheduling.x-k8s.io", "PodGroup.scheduling.volcano.sh",
		"JobSet.jobset.x-k8s.io", "PyTorchJob.kubeflow.org", "Job.batch.volcano.sh",
	}
}

// neverGroups have kinds that hand out rights, or change what the API server does.
func neverGroups() []string {
	return []string{
		"rbac.authorization.k8s.io", "authorization.k8s.io", "authentication.k8s.io", "admissionregistration.k8s.io",
		"apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io",
	}
}

// neverKinds hand out rights, or move objects past what was checked: a template
// makes pods at another time, a binding puts a pod on a node, and a list is many.
func neverKinds() []string {
	return []string{
		"ServiceAccount", "TokenRequest", "Namespace", "Node", "Binding", "Event", "Endpoints", "List",
		"ResourceQuota", "LimitRange", "ControllerRevision.apps",
		"AppWrapper.workload.codeflare.dev", "AppWrapper.mcad.ibm.com", "RayCronJob.ray.io",
	}
}

// plainSecrets are types of secrets that are data only. No new workload wraps a
// secret; an earlier version took some that still wait.
func plainSecrets() []string {
	return []string{
		"", "Opaque", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "kubernetes.io/tls",
		"kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson",
	}
}

// neverSecret reports whether Kubernetes gives rights for secrets of the type: it
// fills them with a token, or takes what is in them for one.
func neverSecret(kind string) bool {
	return kind == "kubernetes.io/service-account-token" || strings.HasPrefix(kind, "bootstrap.kubernetes.io/")
}

// kindOf is how lists name the kind of an object.
func kindOf(apiVersion, kind string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		return kind
	}
	return kind + "." + group
}

func never(kind string) bool {
	name, group, _ := strings.Cut(kind, ".")
	return slices.Contains(neverKinds(), kind) || slices.Contains(neverGroups(), group) || strings.HasSuffix(name, "List")
}

// Never reports whether no list of kinds allows the kind, written as Kind.group.
func Never(kind string) bool { return never(kind) }

func (p policy) allowsKind(kind string) bool {
	list := p.Kinds
	if len(list) == 0 {
		list = []string{workload.DefaultKinds}
	}
	return slices.ContainsFunc(list, func(entry string) bool {
		switch entry {
		case workload.AllKinds:
			return true
		case workload.DefaultKinds:
			return slices.Contains(defaultKinds(), kind)
		}
		return entry == kind
	})
}
