package workload

import (
	"path"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// Identity is a user as an API server identifies it. Its rights are asked for every
// object that is created on its behalf.
type Identity struct {
	User   string   `json:"user"`
	UID    string   `json:"uid,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Bound binds submitters of messages, and of objects that move, to a user of Kubernetes.
type Bound struct {
	// Who are patterns of submitters, as in Submitters.Who.
	Who []string `json:"who"`
	// User is the user's name; a service account is system:serviceaccount:NAMESPACE:NAME.
	User string `json:"user"`
	// Groups that the user is in, beside those that Kubernetes gives to everyone
	// and to service accounts.
	Groups []string `json:"groups,omitempty"`
}

const (
	accountPrefix = "system:serviceaccount:"
	accountsGroup = "system:serviceaccounts"
	everyone      = "system:authenticated"
	masters       = "system:masters"
)

// ValidateIdentities returns what of the list cannot be, as a fault.List.
func ValidateIdentities(list []Bound) error {
	var faults fault.List
	for i, b := range list {
		at := fault.Index("", i)
		faults.Under("", validatePatterns(at+".who", b.Who))
		switch account, is := strings.CutPrefix(b.User, accountPrefix); {
		case b.User == "":
			faults.Add(at+".user", "is missing; want a user of Kubernetes, such as %steam-a:submitter", accountPrefix)
		case is && (strings.Count(account, ":") != 1 || !validAccount(account)):
			faults.Add(at+".user", "%q: want %sNAMESPACE:NAME", b.User, accountPrefix)
		}
		for j, group := range b.Groups {
			if group == "" || group == masters {
				faults.Add(fault.Index(at+".groups", j), "%q: want a group whose rights are asked; %s may do everything", group, masters)
			}
		}
	}
	return faults.Err()
}

func validAccount(account string) bool {
	namespace, name, _ := strings.Cut(account, ":")
	return namespace != "" && name != ""
}

// IdentityOf returns the user of Kubernetes that the submitter of the workload is bound
// to; nil when the queue binds none. bound is false when the queue binds submitters,
// and this one is not among them. A user of kubectl is bound only where the object moves: another
// cluster does not know the user.
func (r Rules) IdentityOf(w *Workload) (identity *Identity, bound bool) {
	if len(r.Identities) == 0 || w.Home() != "" {
		return nil, true
	}
	for _, b := range r.Identities {
		if slices.ContainsFunc(b.Who, func(who string) bool {
			matched, err := path.Match(who, w.Submitter)
			return err == nil && matched
		}) {
			return b.identity(), true
		}
	}
	return nil, false
}

// identity adds the groups that Kubernetes gives to a user.
func (b Bound) identity() *Identity {
	groups := slices.Clone(b.Groups)
	if account, is := strings.CutPrefix(b.User, accountPrefix); is {
		namespace, _, _ := strings.Cut(account, ":")
		groups = append(groups, accountsGroup, accountsGroup+":"+namespace)
	}
	return &Identity{User: b.User, Groups: append(groups, everyone)}
}

// PodsOf is the pod policy for a workload. One whose submitter has no identity in the cluster
// where it runs names no service account that the queue does not list: its pods would have rights
// that nothing asks for.
func (r Rules) PodsOf(w *Workload) PodPolicy {
	policy := r.Pods
	if identity, _ := r.IdentityOf(w); identity == nil && w.Home() == "" && len(policy.ServiceAccounts) == 0 {
		policy.ServiceAccounts = []string{defaultAccount}
	}
	return policy
}

// defaultAccount is the service account of pods that name none.
const defaultAccount = "default"
