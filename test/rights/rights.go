// Package rights compares what the services' accounts may do in a Kubernetes
// cluster, as package rbac lists it, with what they ask of its API server.
//
// It is for tests; what the API server allows is its own authorizer's to say.
package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/deploy/rbac"
)

// Right is one verb on one resource for one of the services' accounts.
type Right struct {
	Account, Verb, Group, Resource string
}

func (r Right) String() string {
	return fmt.Sprintf("%s may %s %s", r.Account, r.Verb, strings.TrimSuffix(r.Resource+"."+r.Group, "."))
}

// Grant is a right that is listed, and where: for all objects, or for those of one
// namespace or name.
type Grant struct {
	Right
	Namespace, Name string
}

// Covers reports whether the grant allows what is asked.
func (g Grant) Covers(asked Right, namespace, name string) bool {
	return g.Right == asked && (g.Namespace == "" || g.Namespace == namespace) && (g.Name == "" || g.Name == name)
}

// OfKueue recognizes rights that only a cluster with Kueue's definitions has a use for.
func (r Right) OfKueue() bool {
	return r.Group == "kueue.x-k8s.io" || r.Resource == "customresourcedefinitions"
}

// Listed reads package rbac, with one name for the cluster and one namespace for queues.
func Listed(cluster, queueNamespace string) ([]Grant, error) {
	documents, err := rbac.ForNamespace(queueNamespace)
	if err != nil {
		return nil, err
	}
	type key struct{ kind, namespace, name string }
	roles := map[key]rbacv1.ClusterRole{} // a Role reads the same
	var bindings []rbacv1.RoleBinding     // a ClusterRoleBinding reads the same
	leases, err := rbac.ForCluster(cluster)
	if err != nil {
		return nil, err
	}
	for _, document := range slices.Concat(rbac.Documents(), leases, documents) {
		var role rbacv1.ClusterRole
		var binding rbacv1.RoleBinding
		if err := yaml.Unmarshal(document, &role); err != nil {
			return nil, fmt.Errorf("read a role: %w", err)
		}
		switch role.Kind {
		case "ClusterRole", "Role":
			roles[key{role.Kind, role.Namespace, role.Name}] = role
		case "ClusterRoleBinding", "RoleBinding":
			if err := yaml.Unmarshal(document, &binding); err != nil {
				return nil, fmt.Errorf("read a binding: %w", err)
			}
			bindings = append(bindings, binding)
		}
	}
	gathered := slices.Collect(maps.Values(roles))
	var grants []Grant
	for _, b := range bindings {
		of := key{b.RoleRef.Kind, "", b.RoleRef.Name}
		if of.kind == "Role" {
			of.namespace = b.Namespace
		}
		role, found := roles[of]
		if !found {
			return nil, fmt.Errorf("binding %s: there is no %s %q", b.Name, of.kind, of.name)
		}
		for _, rule := range rulesOf(role, gathered) {
			grants = append(grants, expand(b.Subjects[0].Name, b.Namespace, rule)...)
		}
	}
	return grants, nil
}

// rulesOf are those of a role, or of the roles that it gathers.
func rulesOf(role rbacv1.ClusterRole, all []rbacv1.ClusterRole) []rbacv1.PolicyRule {
	if role.AggregationRule == nil {
		return role.Rules
	}
	var rules []rbacv1.PolicyRule
	for _, selector := range role.AggregationRule.ClusterRoleSelectors {
		for _, gathered := range all {
			for key, value := range selector.MatchLabels {
				if gathered.Labels[key] == value {
					rules = append(rules, gathered.Rules...)
				}
			}
		}
	}
	return rules
}

func expand(account, namespace string, rule rbacv1.PolicyRule) (grants []Grant) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					grants = append(grants, Grant{Right{account, verb, group, resource}, namespace, name})
				}
			}
		}
	}
	return grants
}

// Unused returns what is listed, in words, and not among what was used; keep
// chooses what counts.
func Unused(grants []Grant, used map[Right]bool, keep func(Right) bool) []string {
	unused := map[string]bool{}
	for _, g := range grants {
		if keep(g.Right) && !used[g.Right] {
			unused[g.String()] = true
		}
	}
	return slices.Sorted(maps.Keys(unused))
}
