package quota

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// multiKueueController is the controller of Kueue's checks that choose a cluster.
const multiKueueController = "kueue.x-k8s.io/multikueue"

// Messaged lists the AdmissionChecks that pod sets with these flavors are put to by message,
// sorted: those of the queue whose controller is neither ProvisioningController nor Kueue's
// own.
func (q *Queue) Messaged(flavors []workload.PodSetFlavors) (names []string) {
	for _, check := range q.flavoredChecks() {
		if q.tree.messaged[check.Name] != nil && (len(check.OnFlavors) == 0 || usesAny(flavors, check.OnFlavors)) {
			names = append(names, check.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// AdmissionCheck returns the check of that name that is asked by message; nil for none.
func (t *Tree) AdmissionCheck(name string) *AdmissionCheck { return t.messaged[name] }

// messagedChecks returns the checks that are asked by message, by name.
func (c *Config) messagedChecks() map[string]*AdmissionCheck {
	byName := map[string]*AdmissionCheck{}
	for i := range c.AdmissionChecks {
		if check := &c.AdmissionChecks[i]; check.ControllerName != ProvisioningController && unaskable(check) == "" {
			byName[check.Name] = check
		}
	}
	return byName
}

// unaskable returns why a check that does not ask for nodes cannot be asked by message; empty
// when it can.
func unaskable(check *AdmissionCheck) string {
	switch {
	case check.ControllerName == multiKueueController:
		return fmt.Sprintf("AdmissionCheck %q is of the controller %q, and Muster chooses among its clusters by itself; remove the check from the queue", check.Name, check.ControllerName)
	case !className.MatchString(check.Name):
		return fmt.Sprintf("AdmissionCheck %q cannot be asked by message: want a name of lower-case letters, digits, dashes and dots, such as budget", check.Name)
	}
	return ""
}
