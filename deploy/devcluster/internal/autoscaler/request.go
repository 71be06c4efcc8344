package autoscaler

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Requests is the resource of ProvisioningRequests.
var Requests = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}

// The conditions of a request.
const (
	Accepted        = "Accepted"
	Provisioned     = "Provisioned"
	Failed          = "Failed"
	BookingExpired  = "BookingExpired"
	CapacityRevoked = "CapacityRevoked"
)

// request is a ProvisioningRequest.
type request struct {
	fields
	object *unstructured.Unstructured
}

// fields are what is read and written of a ProvisioningRequest.
type fields struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Class      string            `json:"provisioningClassName"`
		Parameters map[string]string `json:"parameters"`
		PodSets    []struct {
			Count          int32 `json:"count"`
			PodTemplateRef struct {
				Name string `json:"name"`
			} `json:"podTemplateRef"`
		} `json:"podSets"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		Details    map[string]string  `json:"provisioningClassDetails,omitempty"`
	} `json:"status"`
}

func requestOf(object *unstructured.Unstructured) (*request, error) {
	r := &request{object: object.DeepCopy()}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.object.Object, &r.fields); err != nil {
		return nil, fmt.Errorf("reading request %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return r, nil
}

func (r *request) is(condition string) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, condition)
}

// since is when a condition became what it is.
func (r *request) since(condition string) time.Time {
	if c := meta.FindStatusCondition(r.Status.Conditions, condition); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// set sets a condition and reports whether that changes anything.
func (r *request) set(condition string, status bool, reason, message string) bool {
	c := metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return meta.SetStatusCondition(&r.Status.Conditions, c)
}

// written is the object with the conditions and details as they are now.
func (r *request) written() (*unstructured.Unstructured, error) {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.Status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of request %s/%s: %w", r.Namespace, r.Name, err)
	}
	written := r.object.DeepCopy()
	written.Object["status"] = status
	return written, nil
}
