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
)

// Tenant is a submitter, or the controller of an AdmissionCheck.
type Tenant struct {
	Kind, Text string // such as "tenant" and "team-a=one,two"
	User       access.User
}

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
	default:
		return Tenant{}, fmt.Errorf("%q: want %s, %s or %s", kind, KindTenant, KindNamed, KindChecker)
	}
	user, err := newUser(name, strings.Split(queues, ",")...)
	return Tenant{kind, text, user}, err
}
