package output

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// pastUse prints what a queue used in the past, which orders the workloads of its
// ClusterQueue; nothing where it does not.
func pastUse(all ...workload.PastUse) string {
	var texts []string
	for _, past := range all {
		text := useOf(past)
		if len(all) > 1 {
			text += " in " + past.Namespace
		}
		var of []string
		for _, name := range slices.Sorted(maps.Keys(past.Consumed)) {
			of = append(of, fmt.Sprintf("%s %s", name, figures(past.Consumed[name])))
		}
		if past.Weight != 1 {
			of = append(of, "weight "+figures(past.Weight))
		}
		if len(of) > 0 {
			text += " (" + strings.Join(of, ", ") + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// useOf prints the figure by which workloads are ordered.
func useOf(past workload.PastUse) string {
	if past.Use == math.MaxFloat64 {
		return "beyond all others"
	}
	return figures(past.Use)
}

// figures prints a number with at most four figures.
func figures(number float64) string { return strconv.FormatFloat(number, 'g', 4, 64) }
