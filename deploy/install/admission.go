package install

import (
	"context"
	"fmt"
	"slices"
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/deploy/policy"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/service/pause"
)

// Admission is by what the rules of package policy are enforced.
type Admission string

const (
	// Policies are evaluated by the API server. Kinds that it does not serve are left out.
	Policies Admission = "policies"
	// Webhooks are served by intake.
	Webhooks Admission = "webhooks"
	// Automatic takes policies of the kinds that the API server serves, and webhooks for
	// the others.
	Automatic Admission = "auto"
)

// Chosen is by what the rules of each kind are enforced.
type Chosen struct {
	Validating, Mutating Admission
}

// String is for people.
func (c Chosen) String() string {
	if c.Validating == c.Mutating {
		return string(c.Validating)
	}
	return fmt.Sprintf("%s for validation, %s for mutation", c.Validating, c.Mutating)
}

// choose returns what an Admission means for the API server.
func choose(ctx context.Context, client dynamic.Interface, wanted Admission) (Chosen, error) {
	if wanted != Automatic {
		return Chosen{wanted, wanted}, nil
	}
	c := Chosen{Policies, Policies}
	for resource, choice := range map[string]*Admission{"validatingadmissionpolicies": &c.Validating, "mutatingadmissionpolicies": &c.Mutating} {
		kind := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
		_, err := client.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsNotFound(err):
			*choice = Webhooks
		case err != nil:
			return Chosen{}, fmt.Errorf("check whether the API server serves %s: %w", resource, err)
		}
	}
	return c, nil
}

// installAdmission applies what was chosen, and then removes what it replaces, so that the
// rules are enforced at every moment.
func installAdmission(ctx context.Context, client dynamic.Interface, c Chosen, o Options) error {
	kueue, err := installed(ctx, client, kueueItself)
	if err != nil {
		return err
	}
	settings := policy.Settings{KueueLabel: !kueue, Moving: o.Moving}
	var wanted, obsolete [][]byte
	for _, document := range settings.Documents() {
		by, err := c.of(document)
		if err != nil {
			return err
		}
		if by == Policies {
			wanted = append(wanted, document)
		} else {
			obsolete = append(obsolete, document)
		}
	}
	slices.Reverse(obsolete) // bindings follow their policies
	webhooks := policy.Webhooks{Settings: settings, Name: rbac.WebhookConfiguration, Client: o.client(), Namespaces: o.Namespaces}
	for _, made := range []struct {
		by   Admission
		make func() ([]byte, error)
	}{{c.Validating, webhooks.Validating}, {c.Mutating, webhooks.Mutating}} {
		document, err := made.make()
		if err != nil {
			return err
		}
		if made.by == Webhooks {
			wanted = append(wanted, document)
		} else {
			obsolete = append(obsolete, document)
		}
	}
	support := rbac.ForWebhooks()
	if o.WebhookURL == "" {
		support = append(support, rbac.ServiceOfWebhooks())
	}
	if c.Validating == Webhooks || c.Mutating == Webhooks {
		wanted = append(support, wanted...)
	} else {
		obsolete = append(obsolete, support...)
	}
	for _, document := range wanted {
		if err := apply(ctx, client, document); err != nil {
			if apierrors.IsNotFound(err) && o.Admission == "" {
				return nil // a Kubernetes older than 1.36
			}
			return err
		}
	}
	if err := awaitCreations(ctx, client); err != nil || o.Admission == "" {
		return err
	}
	return replace(ctx, client, obsolete)
}

// effective is how long the API server may take to enforce what was applied. Each API server
// compiles changed policies once a second, and none reports when it has.
const effective = 5 * time.Second

// replace removes what was replaced and exists, when what replaces it is in force.
func replace(ctx context.Context, client dynamic.Interface, obsolete [][]byte) error {
	waited := false
	for _, document := range obsolete {
		objects, name, err := place(client, document)
		if err != nil {
			return err
		}
		if _, err := objects.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			continue // the kind may not be served either
		} else if err != nil {
			return fmt.Errorf("look for %q, which is obsolete: %w", name, err)
		}
		if !waited {
			if err := pause.For(ctx, effective); err != nil {
				return err
			}
			waited = true
		}
		if err := objects.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove %q, which is obsolete: %w", name, err)
		}
	}
	return nil
}

// of returns by what the rules of a policy, or a binding, are enforced.
func (c Chosen) of(document []byte) (Admission, error) {
	var object metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &object); err != nil {
		return "", fmt.Errorf("read manifest: %w", err)
	}
	switch object.Kind {
	case "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding":
		return c.Mutating, nil
	}
	return c.Validating, nil
}

// client is how the API server reaches intake.
func (o Options) client() registration.WebhookClientConfig {
	if o.WebhookURL != "" {
		return registration.WebhookClientConfig{URL: &o.WebhookURL}
	}
	return registration.WebhookClientConfig{Service: &registration.ServiceReference{Namespace: rbac.Namespace, Name: rbac.WebhookService}}
}

// place returns where a document's object is, and its name.
func place(client dynamic.Interface, document []byte) (dynamic.ResourceInterface, string, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, &object.Object); err != nil {
		return nil, "", fmt.Errorf("read manifest: %w", err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(object.GetAPIVersion(), object.GetKind()))
	return client.Resource(resource).Namespace(object.GetNamespace()), object.GetName(), nil
}
