package policy

import (
	"fmt"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// Prefix begins the names of the policies.
	Prefix = "muster-"
	// Path is that of the webhooks; the name of a policy without Prefix follows.
	Path = "/policies/"
	// webhookDomain ends the names of the webhooks.
	webhookDomain = ".policy.muster.dev"
	// webhookTimeout is how long the API server waits for intake, in seconds.
	webhookTimeout = 5
)

// reach is for which objects the API server needs intake's answer. For all others that a
// policy is for it goes on without one while intake is away, so that this stops nothing but
// what is Muster's.
type reach int

const (
	selected reach = iota // what the policy itself selects
	queued                // with a queue label; the policy is for no others
	anyRay                // with a queue label
	wrapped               // in the namespaces of queues
)

// reaches are by name of the policy.
func reaches() map[string]reach {
	return map[string]reach{
		"fixed-ray": selected, "fixed-templates": selected, "fixed-pods": selected,
		"hold": queued, "holdable": queued, "held": queued,
		"ray-user": anyRay, "fixed-amounts": anyRay,
		"appwrapper-user": wrapped, "appwrapper-fixed": wrapped,
	}
}

// Webhooks are the settings of the webhooks that stand for the policies.
type Webhooks struct {
	Settings
	// Name is that of both configurations.
	Name string
	// Client is how the API server reaches intake; Path and a policy's name are added.
	Client admission.WebhookClientConfig
	// Namespaces are those of queues.
	Namespaces []string
}

// one is a policy of either kind, as far as webhooks are made from it.
type one struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		FailurePolicy      *admission.FailurePolicyType      `json:"failurePolicy"`
		ReinvocationPolicy *admission.ReinvocationPolicyType `json:"reinvocationPolicy"`
		MatchConstraints   struct {
			ObjectSelector *metav1.LabelSelector          `json:"objectSelector"`
			ResourceRules  []admission.RuleWithOperations `json:"resourceRules"`
		} `json:"matchConstraints"`
		MatchConditions []admission.MatchCondition `json:"matchConditions"`
	} `json:"spec"`
}

// Validating returns the configuration of the webhooks for the validating policies.
func (w Webhooks) Validating() ([]byte, error) {
	configuration := admission.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: w.metadata(),
	}
	err := w.each("ValidatingAdmissionPolicy", func(p one, name string, object, namespace *metav1.LabelSelector, failure admission.FailurePolicyType) {
		configuration.Webhooks = append(configuration.Webhooks, admission.ValidatingWebhook{
			Name: name, ClientConfig: w.client(p), Rules: p.Spec.MatchConstraints.ResourceRules, FailurePolicy: &failure,
			MatchPolicy: equivalent(), NamespaceSelector: namespace, ObjectSelector: object, SideEffects: none(),
			TimeoutSeconds: timeout(), AdmissionReviewVersions: []string{"v1"}, MatchConditions: p.Spec.MatchConditions,
		})
	})
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(configuration)
}

// Mutating returns the configuration of the webhooks for the mutating policies.
func (w Webhooks) Mutating() ([]byte, error) {
	configuration := admission.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: w.metadata(),
	}
	err := w.each("MutatingAdmissionPolicy", func(p one, name string, object, namespace *metav1.LabelSelector, failure admission.FailurePolicyType) {
		configuration.Webhooks = append(configuration.Webhooks, admission.MutatingWebhook{
			Name: name, ClientConfig: w.client(p), Rules: p.Spec.MatchConstraints.ResourceRules, FailurePolicy: &failure,
			MatchPolicy: equivalent(), NamespaceSelector: namespace, ObjectSelector: object, SideEffects: none(),
			TimeoutSeconds: timeout(), AdmissionReviewVersions: []string{"v1"}, MatchConditions: p.Spec.MatchConditions,
			ReinvocationPolicy: p.Spec.ReinvocationPolicy,
		})
	})
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(configuration)
}

func (w Webhooks) metadata() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: w.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "muster"}}
}

// each calls add for the webhooks of each policy of the kind.
func (w Webhooks) each(kind string, add func(p one, name string, object, namespace *metav1.LabelSelector, failure admission.FailurePolicyType)) error {
	for _, document := range w.Documents() {
		var p one
		if err := yaml.Unmarshal(document, &p); err != nil {
			return fmt.Errorf("read policy: %w", err)
		}
		if p.Kind != kind {
			continue
		}
		name := strings.TrimPrefix(p.Metadata.Name, Prefix)
		how, known := reaches()[name]
		if !known {
			return fmt.Errorf("policy %s: has no reach as a webhook; name it in reaches", p.Metadata.Name)
		}
		own := p.Spec.MatchConstraints.ObjectSelector
		if how == selected {
			add(p, name+webhookDomain, own, nil, admission.Fail)
		}
		if how == queued || how == anyRay {
			add(p, name+".queue-label"+webhookDomain, has(queueLabel), nil, admission.Fail)
			if w.KueueLabel {
				add(p, name+".kueue-label"+webhookDomain, has(kueueLabel), nil, admission.Fail)
			}
		}
		if how == wrapped && len(w.Namespaces) > 0 {
			add(p, name+".queue-namespaces"+webhookDomain, own, in(w.Namespaces), admission.Fail)
		}
		if how == anyRay || how == wrapped {
			add(p, name+".others"+webhookDomain, own, nil, admission.Ignore)
		}
	}
	return nil
}

// client is how the API server reaches the webhook of a policy.
func (w Webhooks) client(p one) admission.WebhookClientConfig {
	path := Path + strings.TrimPrefix(p.Metadata.Name, Prefix)
	client := *w.Client.DeepCopy()
	if client.URL != nil {
		url := strings.TrimSuffix(*client.URL, "/") + path
		client.URL = &url
	}
	if client.Service != nil {
		client.Service.Path = &path
	}
	return client
}

// has selects objects that have the label, which is quoted as in CEL.
func has(label string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: strings.Trim(label, `"`), Operator: metav1.LabelSelectorOpExists}}}
}

func in(namespaces []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: namespaces},
	}}
}

func equivalent() *admission.MatchPolicyType { return new(admission.Equivalent) }
func none() *admission.SideEffectClass       { return new(admission.SideEffectClassNone) }
func timeout() *int32                        { return new(int32(webhookTimeout)) }
