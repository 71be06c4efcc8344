package policywebhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Review returns the policy's answer to a request. What cannot be evaluated is refused, as
// under a policy that fails.
func (c compiled) Review(ctx context.Context, request *admissionv1.AdmissionRequest, authz authorizer.Authorizer) *admissionv1.AdmissionResponse {
	attributes, err := attributesOf(request)
	if err != nil {
		return refuse(request, err.Error(), "")
	}
	if c.validator != nil {
		return c.validate(ctx, request, attributes, authz)
	}
	return c.mutate(ctx, request, attributes, authz)
}

func (c compiled) validate(ctx context.Context, request *admissionv1.AdmissionRequest, attributes *admission.VersionedAttributes, authz authorizer.Authorizer) *admissionv1.AdmissionResponse {
	result := c.validator.Validate(ctx, attributes.GetResource(), attributes, nil, nil, celconfig.RuntimeCELCostBudget, authz)
	for _, decision := range result.Decisions {
		if decision.Action == validating.ActionDeny {
			return refuse(request, decision.Message, decision.Reason)
		}
	}
	return allow(request)
}

func (c compiled) mutate(ctx context.Context, request *admissionv1.AdmissionRequest, attributes *admission.VersionedAttributes, authz authorizer.Authorizer) *admissionv1.AdmissionResponse {
	if c.matcher != nil {
		switch match := c.matcher.Match(ctx, attributes, nil, authz); {
		case match.Error != nil:
			return refuse(request, match.Error.Error(), "")
		case !match.Matches:
			return allow(request)
		}
	}
	before, ok := attributes.VersionedObject.(*unstructured.Unstructured)
	if !ok {
		return allow(request) // nothing to change
	}
	composed := c.compiler.CreateContext(ctx)
	for _, patcher := range c.patchers {
		changed, err := patcher.Patch(composed, patch.Request{
			MatchedResource: attributes.GetResource(), VersionedAttributes: attributes, ObjectInterfaces: interfaces{},
			OptionalVariables: cel.OptionalVariableBindings{Authorizer: authz},
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return refuse(request, err.Error(), "")
		}
		attributes.VersionedObject = changed
	}
	after, ok := attributes.VersionedObject.(*unstructured.Unstructured)
	if !ok {
		return refuse(request, fmt.Sprintf("a mutation made %T of the object", attributes.VersionedObject), "")
	}
	operations := difference(before.Object, after.Object, "", 2)
	if len(operations) == 0 {
		return allow(request)
	}
	encoded, err := json.Marshal(operations)
	if err != nil {
		return refuse(request, fmt.Sprintf("encode the changes: %v", err), "")
	}
	response := allow(request)
	response.Patch, response.PatchType = encoded, new(admissionv1.PatchTypeJSONPatch)
	return response
}

// attributesOf reads the request as the API server's own packages have it. Objects stay
// without a type: the policies' expressions have none either.
func attributesOf(request *admissionv1.AdmissionRequest) (*admission.VersionedAttributes, error) {
	object, err := objectOf(request.Object)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	old, err := objectOf(request.OldObject)
	if err != nil {
		return nil, fmt.Errorf("read the old object: %w", err)
	}
	extra := map[string][]string{}
	for key, values := range request.UserInfo.Extra {
		extra[key] = values
	}
	kind := schema.GroupVersionKind(request.Kind)
	record := admission.NewAttributesRecord(object, old, kind, request.Namespace, request.Name, schema.GroupVersionResource(request.Resource),
		request.SubResource, admission.Operation(request.Operation), nil, request.DryRun != nil && *request.DryRun,
		&user.DefaultInfo{Name: request.UserInfo.Username, UID: request.UserInfo.UID, Groups: request.UserInfo.Groups, Extra: extra})
	return &admission.VersionedAttributes{Attributes: record, VersionedObject: object, VersionedOldObject: old, VersionedKind: kind}, nil
}

// objectOf returns nil for no object; a nil pointer would be none.
func objectOf(raw runtime.RawExtension) (runtime.Object, error) {
	if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw.Raw); err != nil {
		return nil, err
	}
	return object, nil
}

func allow(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
}

// refuse answers with the reason and code that the API server gives to a policy's refusal.
func refuse(request *admissionv1.AdmissionRequest, message string, reason metav1.StatusReason) *admissionv1.AdmissionResponse {
	code := int32(http.StatusUnprocessableEntity)
	switch reason {
	case metav1.StatusReasonForbidden:
		code = http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		code = http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		code = http.StatusRequestEntityTooLarge
	default:
		reason = metav1.StatusReasonInvalid
	}
	return &admissionv1.AdmissionResponse{
		UID:    request.UID,
		Result: &metav1.Status{Status: metav1.StatusFailure, Message: message, Reason: reason, Code: code},
	}
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// difference returns the operations that turn one object into the other. Below the given depth it replaces whole
// values.
func difference(before, after map[string]any, path string, depth int) []operation {
	var operations []operation
	for key, old := range before {
		if _, stays := after[key]; !stays {
			operations = append(operations, operation{Op: "remove", Path: path + "/" + escaped.Replace(key)})
			continue
		}
		was, is := asMap(old), asMap(after[key])
		switch {
		case reflect.DeepEqual(old, after[key]):
		case was != nil && is != nil && depth > 1:
			operations = append(operations, difference(was, is, path+"/"+escaped.Replace(key), depth-1)...)
		default:
			operations = append(operations, operation{"replace", path + "/" + escaped.Replace(key), after[key]})
		}
	}
	for key, value := range after {
		if _, was := before[key]; !was {
			operations = append(operations, operation{"add", path + "/" + escaped.Replace(key), value})
		}
	}
	slices.SortFunc(operations, func(a, b operation) int { return strings.Compare(a.Path, b.Path) })
	return operations
}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

// escaped writes a key as one step of a JSON pointer.
var escaped = strings.NewReplacer("~", "~0", "/", "~1")

// interfaces are those of objects without a type.
type interfaces struct{}

func (interfaces) GetObjectCreater() runtime.ObjectCreater {
	return unstructuredscheme.NewUnstructuredCreator()
}

func (interfaces) GetObjectTyper() runtime.ObjectTyper {
	return unstructuredscheme.NewUnstructuredObjectTyper()
}
func (interfaces) GetObjectDefaulter() runtime.ObjectDefaulter                   { return nil }
func (interfaces) GetObjectConvertor() runtime.ObjectConvertor                   { return nil }
func (interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return nil }
