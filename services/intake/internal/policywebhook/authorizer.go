package policywebhook

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// NewAuthorizer returns an authorizer that asks the API server.
func NewAuthorizer(client authorization.SubjectAccessReviewsGetter) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: a.GetUser().GetName(), UID: a.GetUser().GetUID(), Groups: a.GetUser().GetGroups(), Extra: map[string]authorizationv1.ExtraValue{},
		}}
		for key, values := range a.GetUser().GetExtra() {
			review.Spec.Extra[key] = values
		}
		if a.IsResourceRequest() {
			review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
				Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
				Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
			}
		} else {
			review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.GetPath(), Verb: a.GetVerb()}
		}
		answer, err := client.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		switch {
		case err != nil:
			return authorizer.DecisionNoOpinion, "", fmt.Errorf("ask whether %q may %s %s: %w", a.GetUser().GetName(), a.GetVerb(), a.GetResource(), err)
		case answer.Status.Allowed:
			return authorizer.DecisionAllow, answer.Status.Reason, nil
		case answer.Status.Denied:
			return authorizer.DecisionDeny, answer.Status.Reason, nil
		}
		return authorizer.DecisionNoOpinion, answer.Status.Reason, nil
	})
}
