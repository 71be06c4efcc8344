package ray

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
)

// ofQuantity words an error about a quantity as the other refusals are; nil for
// other errors.
func ofQuantity(err error) error {
	var bad *kube.QuantityError
	if !errors.As(err, &bad) {
		return nil
	}
	return refuse(bad.Path, bad.What, bad.Remedy)
}

// readPod reads and checks the pod spec of another kind of object.
func readPod(where string, tree any) (*corev1.PodSpec, error) {
	var spec corev1.PodSpec
	if err := kube.Decode(where, tree, &spec); err != nil {
		if refused := ofQuantity(err); refused != nil {
			return nil, refused
		}
		return nil, refuse(where, "does not decode: "+fault.Clip(err.Error()), "correct the field")
	}
	return &spec, checkPod(where, &spec)
}

// ReadAmounts reads amounts by resource. Errors wrap ErrInvalid.
func ReadAmounts(where string, tree any) (corev1.ResourceList, error) {
	var list corev1.ResourceList
	if err := kube.Decode(where, tree, &list); err != nil {
		if refused := ofQuantity(err); refused != nil {
			return nil, refused
		}
		return nil, refuse(where, "does not decode: "+fault.Clip(err.Error()), `want amounts by resource, such as cpu: "2"`)
	}
	return list, nil
}
