package kubecontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	registration "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/manifest/bundle"
)

var policyBindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"}

// Suffixes of the policies that stamp an object's creator on it (deploy/policy); each
// installation has its own prefix.
const (
	stampsWrappers = "-appwrapper-user"
	stampsLabelled = "-ray-user"
)

// StampedBy names the MutatingWebhookConfiguration in which intake's own webhooks may stamp
// objects in place of policies.
func (c *Client) StampedBy(configuration string) { c.webhooks = configuration }

// Core returns the access to Kubernetes' own kinds.
func (c *Client) Core() kubernetes.Interface { return c.core }

// Stamps reports whether a policy with that suffix is in force, or the webhooks that stand
// for it, or were a moment ago. Without it the creator of an object could forge the policy's
// annotations.
func (c *Client) Stamps(ctx context.Context, policy string) (bool, error) {
	asked := c.now()
	if c.stamping.yes(policy, asked) {
		return true, nil
	}
	stamps, err := c.stampsNow(ctx, policy)
	if stamps && err == nil {
		c.stamping.keep(policy, asked)
	}
	return stamps, err
}

func (c *Client) stampsNow(ctx context.Context, policy string) (bool, error) {
	stamps, err := c.policyStamps(ctx, policy)
	if stamps || err != nil || c.webhooks == "" {
		return stamps, err
	}
	configuration, err := c.core.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, c.webhooks, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the webhooks %s: %w", c.webhooks, err)
	}
	return slices.ContainsFunc(configuration.Webhooks, func(w registration.MutatingWebhook) bool {
		return strings.HasPrefix(w.Name, strings.TrimPrefix(policy, "-")+".") && len(w.ClientConfig.CABundle) > 0 &&
			w.FailurePolicy != nil && *w.FailurePolicy == registration.Fail
	}), nil
}

func (c *Client) policyStamps(ctx context.Context, policy string) (bool, error) {
	// From the API server's cache, as it evaluates policies: a consistent list waits up to 100
	// ms until that cache is known to be current.
	bindings, err := c.objects.Resource(policyBindings).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return false, nil // this Kubernetes version does not serve them
	}
	if err != nil {
		return false, fmt.Errorf("look for the policy %s: %w", policy, err)
	}
	return slices.ContainsFunc(bindings.Items, func(b unstructured.Unstructured) bool { return strings.HasSuffix(b.GetName(), policy) }), nil
}

// Allowed asks the API server whether the user may create the object; why is empty if
// so, or if the user could create any object of the kind in the namespace a moment ago. For a kind
// that is not served the error matches meta.IsNoMatchError.
func (c *Client) Allowed(ctx context.Context, user bundle.Submitter, id bundle.Identity) (why string, err error) {
	gv, err := schema.ParseGroupVersion(id.APIVersion)
	if err != nil {
		return err.Error(), nil
	}
	found, err := c.kinds.Of(gv.WithKind(id.Kind))
	if err != nil {
		return "", err
	}
	if found.Scope.Name() != meta.RESTScopeNameNamespace {
		return id.Kind + " " + id.Name + " belongs to no namespace; wrap objects of namespaces only", nil
	}
	asked := c.now()
	question := creation{user.User, user.UID, strings.Join(user.Groups, "\n"), found.Resource.String(), id.Namespace}
	if c.creating.yes(question, asked) {
		return "", nil
	}
	const anyName = ""
	if why, err = apiserver.MayCreate(ctx, c.core.AuthorizationV1(), user, found.Resource, id.Namespace, anyName); err == nil && why == "" {
		c.creating.keep(question, asked)
		return "", nil
	}
	return apiserver.MayCreate(ctx, c.core.AuthorizationV1(), user, found.Resource, id.Namespace, id.Name)
}
