package quota

import (
	"maps"
	"slices"
	"strconv"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// maxShownSeconds bounds for how long a gang shows itself as pods: no other gets its turn
// meanwhile.
const maxShownSeconds = 24 * 3600

// placeholders checks the parameters of a class of which Muster itself is the only reader.
func (v *validation) placeholders(path string, config *ProvisioningConfig) {
	if config.Class != workload.PlaceholderClass {
		return
	}
	if config.MergePolicy != "" {
		v.faults.Add(path+".podSetMergePolicy", "does nothing with the class %s, which shows each pod", workload.PlaceholderClass)
	}
	for _, name := range slices.Sorted(maps.Keys(config.Parameters)) {
		value := config.Parameters[name]
		switch seconds, err := strconv.Atoi(value); {
		case name != workload.DeadlineParameter:
			v.faults.Add(path+".parameters."+name, "is no parameter of the class %s; it has %s only", workload.PlaceholderClass, workload.DeadlineParameter)
		case err != nil || seconds < 1 || seconds > maxShownSeconds:
			v.faults.Add(path+".parameters."+name, "%s: want a number of seconds from 1 to %d", fault.Quote(value), maxShownSeconds)
		}
	}
}
