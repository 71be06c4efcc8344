package ray

import (
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/spec/workload"
)

// Tree reads one document in JSON or YAML, whatever kind it is, as strictly as
// Read does. Numbers are json.Number. Errors wrap ErrInvalid.
func Tree(data []byte) (map[string]any, error) {
	if err := checkBytes(len(data), ""); err != nil {
		return nil, err
	}
	return parse(data)
}

// checkPod refuses a pod template of another kind of object for the reasons for
// which one of a RayCluster is refused. Errors wrap ErrInvalid.
func checkPod(path string, spec *corev1.PodSpec) error {
	v := &verdict{}
	if err := checkTemplate(v, path, spec); err != nil {
		return err
	}
	if v.refusal != nil {
		return v.refusal
	}
	return refuseAmongPods(path, spec)
}

// ReadPod reads the pod spec of another kind of object, and refuses it for the reasons for
// which that of a RayCluster is refused. As there, the pod gets the overhead of its runtime
// class. Errors wrap ErrInvalid.
func (o Operator) ReadPod(where string, tree any) (*corev1.PodSpec, error) {
	spec, err := readPod(where, tree)
	if err != nil {
		return nil, err
	}
	v := &verdict{}
	if err := o.addOverhead(v, where, spec); err != nil {
		return nil, err
	}
	if v.refusal != nil {
		return nil, v.refusal
	}
	return spec, nil
}

// ReadLife reads what annotations ask of a workload's life. Errors wrap
// ErrInvalid.
func ReadLife(metadata map[string]any) (workload.Life, error) { return readLife(metadata) }
