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

// Bound binds submitters of messages to a user of Kubernetes.
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
		for j, who := range b.Who {
			if strings.HasPrefix(who, ByKubernetes+"/") {
				faults.Add(fault.Index(at+".who", j), "%q: Kubernetes already knows users of kubectl; want names such as http/alice or nats/team-a", who)
			}
		}
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

// fromKubernetes reports whether the submitter came by an object of a cluster. The
// API server identifies that user, not the queue.
func fromKubernetes(submitter string) bool { return strings.HasPrefix(submitter, ByKubernetes+"/") }

// Home returns the cluster where the workload's object already is, because a user
// created it there with kubectl; "" when Muster creates the object wherever the gang is
// admitted. A gang with a home runs there or waits.
func (w Workload) Home() string {
	home, is := strings.CutPrefix(w.Submitter, ByKubernetes+"/")
	if !is {
		return ""
	}
	home, _, _ = strings.Cut(home, "/")
	return home
}

// IdentityOf returns the user of Kubernetes that the submitter of a message is bound
// to; nil when the queue binds none. bound is false when the queue binds submitters,
// and this one is not among them.
func (r Rules) IdentityOf(submitter string) (identity *Identity, bound bool) {
	if len(r.Identities) == 0 || fromKubernetes(submitter) {
		return nil, true
	}
	for _, b := range r.Identities {
		if slices.ContainsFunc(b.Who, func(who string) bool {
			matched, err := path.Match(who, submitter)
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

// PodsOf is the pod policy for the workloads of a submitter. A message whose
// submitter has no identity in Kubernetes names no service account that the queue
// does not list: its pods would have rights that nothing asks for.
func (r Rules) PodsOf(submitter string) PodPolicy {
	policy := r.Pods
	if identity, _ := r.IdentityOf(submitter); identity == nil && !fromKubernetes(submitter) && len(policy.ServiceAccounts) == 0 {
		policy.ServiceAccounts = []string{defaultAccount}
	}
	return policy
}

// defaultAccount is the service account of pods that name none.
const defaultAccount = "default"
