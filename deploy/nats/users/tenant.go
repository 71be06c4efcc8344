package users

import (
	"fmt"
	"strings"

	"muster.dev/muster/deploy/nats/access"
)

// Kinds of tenants, as the flags of deploy/compose name them.
const (
	KindTenant  = "tenant"
	KindNamed   = "named-tenant"
	KindChecker = "checker"
	// KindIntake is the intake of a further cluster, named as the cluster.
	KindIntake = "intake"
)

// Tenant is a submitter, the controller of an AdmissionCheck, or the intake of a further cluster.
type Tenant struct {
	Kind, Text string // such as "tenant" and "team-a=one,two"
	User       access.User
}

// Submits reports whether it is a submitter.
func (t Tenant) Submits() bool { return t.Kind == KindTenant || t.Kind == KindNamed }

// ParseTenant reads a tenant of a kind.
func ParseTenant(kind, text string) (Tenant, error) {
	if kind == KindChecker {
		user, err := access.Checker(text)
		return Tenant{kind, text, user}, err
	}
	name, queues, _ := strings.Cut(text, "=")
	newUser := access.Tenant
	switch kind {
	case KindTenant:
	case KindNamed:
		newUser = access.NamedTenant
	case KindIntake:
		newUser = access.NewMemberIntake
	default:
		return Tenant{}, fmt.Errorf("%q: want %s, %s, %s or %s", kind, KindTenant, KindNamed, KindChecker, KindIntake)
	}
	user, err := newUser(name, strings.Split(queues, ",")...)
	return Tenant{kind, text, user}, err
}
