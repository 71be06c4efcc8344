package policywebhook

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"muster.dev/muster/pkg/kube/apiserver"
)

// NewAuthorizer returns an authorizer that asks the API server.
func NewAuthorizer(client authorization.SubjectAccessReviewsGetter) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		spec := authorizationv1.SubjectAccessReviewSpec{
			User: a.GetUser().GetName(), UID: a.GetUser().GetUID(), Groups: a.GetUser().GetGroups(), Extra: map[string]authorizationv1.ExtraValue{},
		}
		for key, values := range a.GetUser().GetExtra() {
			spec.Extra[key] = values
		}
		if a.IsResourceRequest() {
			spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
				Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
				Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
			}
		} else {
			spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.GetPath(), Verb: a.GetVerb()}
		}
		status, err := apiserver.Review(ctx, client, spec)
		switch {
		case err != nil:
			return authorizer.DecisionNoOpinion, "", err
		case status.Allowed:
			return authorizer.DecisionAllow, status.Reason, nil
		case status.Denied:
			return authorizer.DecisionDeny, status.Reason, nil
		}
		return authorizer.DecisionNoOpinion, status.Reason, nil
	})
}
