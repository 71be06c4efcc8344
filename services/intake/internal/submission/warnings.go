package submission

import (
	"fmt"
	"strings"
)

// Bounds of the warnings of a submission; the first are kept.
const (
	mostWarnings   = 20
	longestWarning = 1000
)

// bounded bounds the number and length of the warnings of a submission.
func bounded(warnings []string) []string {
	rest := len(warnings) - mostWarnings
	var kept []string
	for _, warning := range warnings[:min(len(warnings), mostWarnings)] {
		if len(warning) > longestWarning {
			warning = strings.ToValidUTF8(warning[:longestWarning], "") + "..."
		}
		kept = append(kept, warning)
	}
	if rest > 0 {
		kept = append(kept, fmt.Sprintf("and %d more warnings", rest))
	}
	return kept
}
