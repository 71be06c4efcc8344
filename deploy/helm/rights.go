// Package helm generates the parts of the Helm chart that other packages define: the
// rights in Kubernetes (package rbac) and on the NATS server (package access), the
// definitions (package crd) and the admission policies (package policy). Its tests render
// the chart in all its modes, validate every object with a real API server, and install,
// upgrade and uninstall it there.
//
// It is not for installing anything: Helm does that.
package helm

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/rbac"
)

// prefix begins the names in package rbac; the chart has its own.
const prefix = "muster-"

// rights is what the chart's templates read of package rbac, names without
// prefix.
type rights struct {
	ClusterRoles    []role    `json:"clusterRoles"`
	Everywhere      []binding `json:"everywhere"`      // cluster role bindings
	QueueNamespaces []binding `json:"queueNamespaces"` // role bindings in each queue's namespace
}

// role is a set of rules and the account that it is for. A role may gather the
// rules of others by their labels.
type role struct {
	Name    string                  `json:"name"`
	Account string                  `json:"account"`
	Labels  map[string]string       `json:"labels,omitempty"`
	Gathers *rbacv1.AggregationRule `json:"gathers,omitempty"`
	Rules   []rbacv1.PolicyRule     `json:"rules"`
}

type binding struct {
	Role    string `json:"role"`
	Account string `json:"account"`
}

// placeholder stands for a queue's namespace while the bindings are read.
const placeholder = "queue-namespace"

func (r *rights) addRoles(accounts map[string]string) error {
	gatherers := map[string]string{} // account by label
	for _, document := range rbac.Documents() {
		var found rbacv1.ClusterRole
		if err := yaml.Unmarshal(document, &found); err != nil {
			return fmt.Errorf("read manifest of package rbac: %w", err)
		}
		if found.Kind != "ClusterRole" {
			continue
		}
		account, bound := accounts[found.Kind+"/"+found.Name]
		for label := range found.Labels {
			if !bound {
				account, bound = gatherers[label]
			}
		}
		if !bound {
			return fmt.Errorf("%s %s: no account is bound to it", found.Kind, found.Name)
		}
		if found.AggregationRule != nil {
			for _, selector := range found.AggregationRule.ClusterRoleSelectors {
				for label := range selector.MatchLabels {
					gatherers[label] = account
				}
			}
		}
		r.ClusterRoles = append(r.ClusterRoles, role{strings.TrimPrefix(found.Name, prefix), account, found.Labels, found.AggregationRule, found.Rules})
	}
	return nil
}

// Rights returns files/rights.yaml: the roles and bindings of package rbac.
func Rights() ([]byte, error) {
	perNamespace, err := rbac.ForNamespace(placeholder)
	if err != nil {
		return nil, err
	}
	var all rights
	accounts := map[string]string{} // by kind and name of the role
	for _, document := range append(rbac.Documents(), perNamespace...) {
		var b rbacv1.RoleBinding // a ClusterRoleBinding reads the same
		if err := yaml.Unmarshal(document, &b); err != nil {
			return nil, fmt.Errorf("read manifest of package rbac: %w", err)
		}
		if b.Kind != "RoleBinding" && b.Kind != "ClusterRoleBinding" {
			continue
		}
		bound := binding{strings.TrimPrefix(b.RoleRef.Name, prefix), strings.TrimPrefix(b.Subjects[0].Name, prefix)}
		accounts[b.RoleRef.Kind+"/"+b.RoleRef.Name] = bound.Account
		switch {
		case b.Kind == "ClusterRoleBinding":
			all.Everywhere = append(all.Everywhere, bound)
		case b.Namespace == placeholder:
			all.QueueNamespaces = append(all.QueueNamespaces, bound)
		default:
			return nil, fmt.Errorf("role binding %s/%s: the chart has no such place", b.Namespace, b.Name)
		}
	}
	if err := all.addRoles(accounts); err != nil {
		return nil, err
	}
	return header(all)
}

// Users returns files/nats-users.yaml: the accounts and users of package access, for
// the chart's trial server. They have passwords there and the common inbox prefix,
// because keys of their own cannot be made by a template; but an inbox is read in its
// own account only.
func Users() ([]byte, error) {
	var all struct {
		System   string    `json:"system"`
		Accounts []account `json:"accounts"`
	}
	all.System = access.System
	for _, a := range access.Accounts(access.Users(cluster)) {
		made := account{Name: a.Name, Stores: a.JetStream}
		if a.Limits != (access.Limits{}) {
			made.Limits = map[string]int{"max_connections": a.Limits.Connections, "max_subscriptions": a.Limits.Subscriptions}
		}
		for _, u := range a.Users {
			made.Users = append(made.Users, user{
				Name: u.Name, Service: strings.TrimSuffix(u.Name, "-"+cluster), Publish: u.Publish,
				Subscribe: append([]string{"_INBOX.>"}, u.Subscribe...), Answers: u.Answers,
			})
		}
		for _, e := range a.Exports {
			export := map[string]any{kindOf(e.Stream): e.Subject, "accounts": e.Accounts}
			if e.Answers {
				export["response_type"] = "stream"
			}
			made.Exports = append(made.Exports, export)
		}
		for _, i := range a.Imports {
			imported := map[string]any{kindOf(i.Stream): map[string]any{"account": i.From, "subject": i.Subject}}
			if i.As != "" {
				imported["to"] = i.As
			}
			made.Imports = append(made.Imports, imported)
		}
		all.Accounts = append(all.Accounts, made)
	}
	return header(all)
}

// cluster stands for the cluster's name in the file; the chart puts it in.
const cluster = "CLUSTER"

// account is what the chart's trial server knows of an account of NATS, as it is
// written in the server's configuration.
type account struct {
	Name    string           `json:"name"`
	Stores  bool             `json:"stores,omitempty"` // has JetStream
	Users   []user           `json:"users"`
	Exports []map[string]any `json:"exports"`
	Imports []map[string]any `json:"imports"`
	Limits  map[string]int   `json:"limits,omitempty"` // as the server's configuration has them
}

// user is what the chart's trial server knows of a user of NATS.
type user struct {
	Name      string   `json:"name"`
	Service   string   `json:"service"` // the name without the cluster's
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
	Answers   bool     `json:"answers,omitempty"`
}

func kindOf(stream bool) string {
	if stream {
		return "stream"
	}
	return "service"
}
