// Package policywebhook gives the verdicts of the admission policies of package policy as an
// admission webhook, for API servers that do not serve such policies. It evaluates the same
// documents with the API server's own packages, so that there is one source of the rules.
//
//	HTTP request --> bounds (handler.go) --> AdmissionReview (review.go) --> policy (compile.go)
//
// Whom the API server asks about is in the webhook configurations, which package policy makes
// from the same documents. A review has no effect, and the same review has the same answer,
// save for what a policy asks the authorizer.
//
// It is not for certificates (package webhookcert).
package policywebhook

import (
	"errors"
	"fmt"
	"strings"

	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/deploy/policy"
)

// Policies are compiled policies by name, without policy.Prefix. They may be used
// concurrently.
type Policies map[string]compiled

// compiled is a policy of either kind.
type compiled struct {
	compiler  *cel.CompositedCompiler
	matcher   matchconditions.Matcher // nil without match conditions
	validator validating.Validator    // nil if it mutates
	patchers  []patch.Patcher
}

// Compile compiles the policies of the documents; it skips bindings, for there is one for
// each policy, without conditions of its own.
func Compile(documents [][]byte) (Policies, error) {
	all := Policies{}
	for _, document := range documents {
		var kind metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, fmt.Errorf("read policy: %w", err)
		}
		var c compiled
		var err error
		switch kind.Kind {
		case "ValidatingAdmissionPolicy":
			c, err = compileValidating(document)
		case "MutatingAdmissionPolicy":
			c, err = compileMutating(document)
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", kind.Name, err)
		}
		all[strings.TrimPrefix(kind.Name, policy.Prefix)] = c
	}
	return all, nil
}

// with is what expressions may use: the authorizer, and no parameters.
var with = cel.OptionalVariableDeclarations{HasAuthorizer: true}

// prepare returns a compiler that knows the variables, and the matcher of the conditions.
func prepare(name string, variables []registration.Variable, conditions []registration.MatchCondition, failure *registration.FailurePolicyType) (*cel.CompositedCompiler, matchconditions.Matcher, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, nil, fmt.Errorf("make the compiler: %w", err)
	}
	named := make([]cel.NamedExpressionAccessor, len(variables))
	for i, v := range variables {
		named[i] = &validating.Variable{Name: v.Name, Expression: v.Expression}
	}
	compiler.CompileAndStoreVariables(named, with, environment.StoredExpressions)
	if len(conditions) == 0 {
		return compiler, nil, nil
	}
	expressions := make([]cel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		expressions[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	evaluator := compiler.CompileCondition(expressions, with, environment.StoredExpressions)
	if err := errors.Join(evaluator.CompilationErrors()...); err != nil {
		return nil, nil, fmt.Errorf("matchConditions: %w", err)
	}
	return compiler, matchconditions.NewMatcher(evaluator, failure, "policy", "webhook", name), nil
}

func compileValidating(document []byte) (compiled, error) {
	var p registration.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict(document, &p); err != nil {
		return compiled{}, err
	}
	compiler, matcher, err := prepare(p.Name, p.Spec.Variables, p.Spec.MatchConditions, p.Spec.FailurePolicy)
	if err != nil {
		return compiled{}, err
	}
	rules := make([]cel.ExpressionAccessor, len(p.Spec.Validations))
	for i, v := range p.Spec.Validations {
		if v.MessageExpression != "" {
			return compiled{}, fmt.Errorf("validations[%d].messageExpression: is not supported; write a message", i)
		}
		rules[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
	}
	evaluator := compiler.CompileCondition(rules, with, environment.StoredExpressions)
	if err := errors.Join(evaluator.CompilationErrors()...); err != nil {
		return compiled{}, fmt.Errorf("validations: %w", err)
	}
	nothing := compiler.CompileCondition(nil, with, environment.StoredExpressions)
	return compiled{compiler: compiler, validator: validating.NewValidator(evaluator, matcher, nothing, nothing, p.Spec.FailurePolicy, nil)}, nil
}

func compileMutating(document []byte) (compiled, error) {
	var p registration.MutatingAdmissionPolicy
	if err := yaml.UnmarshalStrict(document, &p); err != nil {
		return compiled{}, err
	}
	compiler, matcher, err := prepare(p.Name, p.Spec.Variables, p.Spec.MatchConditions, p.Spec.FailurePolicy)
	if err != nil {
		return compiled{}, err
	}
	c := compiled{compiler: compiler, matcher: matcher}
	withPatches := with
	withPatches.HasPatchTypes = true
	for i, m := range p.Spec.Mutations {
		if m.JSONPatch == nil {
			return compiled{}, fmt.Errorf("mutations[%d].patchType: %s is not supported; write a JSONPatch", i, m.PatchType)
		}
		evaluator := compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, withPatches, environment.StoredExpressions)
		if err := errors.Join(evaluator.CompilationErrors()...); err != nil {
			return compiled{}, fmt.Errorf("mutations[%d]: %w", i, err)
		}
		c.patchers = append(c.patchers, patch.NewJSONPatcher(evaluator))
	}
	return c, nil
}
