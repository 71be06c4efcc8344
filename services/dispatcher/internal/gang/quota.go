package gang

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

// ErrUnknownQuotas means that the quotas of a namespace cannot be known: a gang there starts
// when all its pods exist.
var ErrUnknownQuotas = errors.New("whether the quotas of the namespace have room is not known, so the gang starts when all its pods exist")

// Quota is a ResourceQuota as pods of a gang meet it.
type Quota struct {
	Name string
	// Left is the hard limit less what is used.
	Left corev1.ResourceList
	// Charged is what one more pod of each set uses; sets that it does not charge
	// are not there.
	Charged map[string]corev1.ResourceList
}

// Claim is what pods of a gang that do not exist yet will use of the quotas of their
// namespace, by the name of the quota.
type Claim map[string]corev1.ResourceList

// ClaimOf returns the claim of missing pods.
func ClaimOf(quotas []Quota, missing []Missing) Claim {
	claim := Claim{}
	for _, quota := range quotas {
		for _, m := range missing {
			claim.add(quota.Name, quota.Charged[m.Like.PodSet], m.Pods)
		}
	}
	return claim
}

// add adds amounts of a quota, the given number of times.
func (c Claim) add(quota string, amounts corev1.ResourceList, times int) {
	if c[quota] == nil {
		c[quota] = corev1.ResourceList{}
	}
	for name, amount := range amounts {
		sum, each := c[quota][name].DeepCopy(), amount.DeepCopy()
		each.Mul(int64(times))
		sum.Add(each)
		c[quota][name] = sum
	}
}

// Short returns why the quotas have no room for the missing pods beside what other gangs
// have claimed; it is empty when they have.
func Short(quotas []Quota, missing []Missing, others []Claim) string {
	wanted := ClaimOf(quotas, missing)
	for _, quota := range quotas {
		needed := wanted[quota.Name]
		for _, name := range slices.Sorted(maps.Keys(needed)) {
			left, limited := quota.Left[name]
			if !limited {
				continue
			}
			taken := apiresource.Quantity{}
			for _, other := range others {
				taken.Add(other[quota.Name][name])
			}
			free := left.DeepCopy()
			free.Sub(taken)
			if asked := needed[name]; asked.Cmp(free) > 0 {
				return shortage(quota.Name, name, missing, asked, left, taken)
			}
		}
	}
	return ""
}

func shortage(quota string, name corev1.ResourceName, missing []Missing, asked, left, taken apiresource.Quantity) string {
	others := ""
	if !taken.IsZero() {
		others = fmt.Sprintf(", of which other gangs that are starting need %s", taken.String())
	}
	return fmt.Sprintf("no pod of the gang starts: ResourceQuota %s has no room for %s that do not exist yet: they need %s of %s, and %s is left%s; raise the quota, or delete what uses it",
		quota, countsOf(missing), asked.String(), name, left.String(), others)
}

// countsOf names the missing pods by set.
func countsOf(missing []Missing) string {
	var words []string
	for _, m := range missing {
		pods := "pods"
		if m.Pods == 1 {
			pods = "pod"
		}
		words = append(words, fmt.Sprintf("%d %s of %q", m.Pods, pods, m.Like.PodSet))
	}
	return strings.Join(words, " and ")
}
