package submission

import (
	"fmt"
	"math"
	"strconv"

	"muster.dev/muster/pkg/kube"
)

// maxClass is the longest name of an object in Kubernetes.
const maxClass = 253

// rank is the workload's priority in the CloudEvents extensions.
type rank struct {
	priority int32
	numbered bool   // a priority is given, possibly 0
	class    string // "priorityclass"; empty for none
}

// setPriority reads the CloudEvents extension "priority".
func (r *rank) setPriority(text string) error {
	if text == "" || text == "null" {
		return nil
	}
	priority, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("CloudEvents attribute \"priority\" is %q; want a whole number from %d to %d", text, math.MinInt32, math.MaxInt32)
	}
	r.priority, r.numbered = int32(priority), true
	return nil
}

// priorityClass returns the priority class of the submission, or else that of the labels.
// Only queue-manager knows which classes exist.
func (r *rank) priorityClass(labels string) (string, error) {
	class, where := r.class, "CloudEvents attribute \"priorityclass\""
	if class == "" {
		class, where = labels, "the label for the priority class"
	}
	switch {
	case len(class) > maxClass:
		return "", fmt.Errorf("%s has %d bytes; want the name of a priority class, of at most %d", where, len(class), maxClass)
	case class != "" && kube.BadName("", class) != "":
		return "", fmt.Errorf("%s is %q; want the name of a priority class: %s", where, class, kube.BadName("", class))
	case class != "" && r.numbered:
		return "", fmt.Errorf("CloudEvents attribute \"priority\" is %d, and %s is %q; want one of them", r.priority, where, class)
	}
	return class, nil
}
