package apiserver

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"muster.dev/muster/pkg/spec/workload"
)

// Review asks the API server whether a user may do what the spec describes. The spec has the
// attributes of a resource or of a path.
func Review(ctx context.Context, client authorization.SubjectAccessReviewsGetter, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	answer, err := client.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, fmt.Errorf("check whether user %q may %s: %w", spec.User, action(spec.ResourceAttributes, spec.NonResourceAttributes), err)
	}
	return answer.Status, nil
}

// MayClient asks the API server whether the client itself may do what the attributes
// describe.
func MayClient(ctx context.Context, client authorization.SelfSubjectAccessReviewsGetter, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	answer, err := client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("check whether this service may %s: %w", action(&attributes, nil), err)
	}
	return answer.Status.Allowed, nil
}

// MayCreate asks the API server whether the user may create an object; when not, why.
func MayCreate(ctx context.Context, client authorization.SubjectAccessReviewsGetter, user workload.Identity,
	resource schema.GroupVersionResource, namespace, name string,
) (why string, err error) {
	status, err := Review(ctx, client, authorizationv1.SubjectAccessReviewSpec{
		User: user.User, UID: user.UID, Groups: user.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Name: name,
		},
	})
	if err != nil || status.Allowed {
		return "", err
	}
	why = fmt.Sprintf("user %q may not create %s in namespace %s", user.User, resource.GroupResource(), namespace)
	return strings.TrimSuffix(why+": "+status.Reason, ": "), nil
}

// action returns what a review asks about, in the words of kubectl auth can-i.
func action(object *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) string {
	if object == nil {
		return path.Verb + " " + path.Path
	}
	resource := schema.GroupResource{Group: object.Group, Resource: object.Resource}.String()
	if object.Subresource != "" {
		resource += "/" + object.Subresource
	}
	text := object.Verb + " " + resource
	if object.Name != "" {
		text += fmt.Sprintf(" %q", object.Name)
	}
	if object.Namespace != "" {
		text += " in namespace " + object.Namespace
	}
	return text
}
