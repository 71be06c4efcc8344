package submission

import (
	"fmt"
	"strings"
)

// Bounds of what is told: a submission with many faults is told of the first.
const (
	mostWarnings   = 20
	longestWarning = 1000
)

// told bounds the warnings of a submission.
func told(warnings []string) []string {
	rest := len(warnings) - mostWarnings
	var bounded []string
	for _, warning := range warnings[:min(len(warnings), mostWarnings)] {
		if len(warning) > longestWarning {
			warning = strings.ToValidUTF8(warning[:longestWarning], "") + "..."
		}
		bounded = append(bounded, warning)
	}
	if rest > 0 {
		bounded = append(bounded, fmt.Sprintf("and %d more warnings", rest))
	}
	return bounded
}
