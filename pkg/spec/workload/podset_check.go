package workload

import (
	"fmt"

	"muster.dev/muster/pkg/spec/resource"
)

// MostPods bounds the pods of a gang that is submitted.
const MostPods = 10_000

// CheckPodSets returns what of pod sets cannot be counted: their complexity, equal names, numbers of
// pods, amounts that are negative or larger than mostAmount.
func CheckPodSets(sets []PodSet, mostPods int, mostAmount int64) error {
	if err := CheckComplexity(sets); err != nil {
		return err
	}
	pods, names := 0, map[string]bool{}
	for i := range sets {
		set := &sets[i]
		if set.Count < 0 || set.Count > mostPods {
			return fmt.Errorf("pod set %.80q: %d pods; want 0 to %d", set.Name, set.Count, mostPods)
		}
		if pods += set.Count; names[set.Name] {
			return fmt.Errorf("two pod sets have the name %.80q", set.Name)
		}
		names[set.Name] = true
		if err := checkAmounts(set.Template.Requests, mostAmount); err != nil {
			return fmt.Errorf("requests of pod set %.80q: %w", set.Name, err)
		}
	}
	if pods == 0 || pods > mostPods {
		return fmt.Errorf("the workload has %d pods; want 1 to %d", pods, mostPods)
	}
	return nil
}

func checkAmounts(of resource.List, most int64) error {
	for _, name := range of.Names() {
		if amount := of[name]; amount < 0 || amount > most {
			return fmt.Errorf("%.80s is %d; want 0 to %d", name, amount, most)
		}
	}
	return nil
}
